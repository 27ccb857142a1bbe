create table cell_mappings (id int primary key)
