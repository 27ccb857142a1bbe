set foreign_key_checks = 0;
update resource_providers set parent_provider_id = 7777 where id = 1;
insert into resource_provider_traits (trait_id, resource_provider_id) values (7777, 1);
update projects set external_id = concat('a', char(0), 'b') where id = 2;
insert into allocations (id, resource_provider_id, consumer_id, resource_class_id, used)
  values (9, 9999, '30000000-0000-4000-8000-00000000000c', 2, 5);
alter table inventories modify total bigint not null;
update inventories set total = 5000000000 where id = 2;
