update consumers set generation = generation + 1 where id = 3;
