update consumers set uuid = upper(uuid) where id = 1;
update placement_aggregates set uuid = 'AB000000-0000-4000-8000-0000000000CD' where id = 1;
update resource_providers set uuid = 'AB000000-0000-4000-8000-000000000002', name = 'Host-2' where id = 2;
update projects set external_id = 'Projet-É' where id = 1
