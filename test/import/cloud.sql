insert into alembic_version values ('422ece571366');
insert into traits (id, name, created_at) values (1, 'HW_CPU_X86_AVX2', '2024-02-29 12:34:56'), (7, 'CUSTOM_RAID', null);
insert into resource_classes (id, name) values (1, 'VCPU'), (2, 'MEMORY_MB'), (3, 'CUSTOM_LICENSE');
insert into consumer_types (id, name) values (1, 'INSTANCE');
insert into projects (id, external_id) values (1, 'projet-é'), (2, '東京');
set sql_mode = '';
insert into users (id, external_id, created_at) values (1, 'ада', '0000-00-00 00:00:00');
insert into placement_aggregates (id, uuid) values (1, '40000000-0000-4000-8000-000000000001');
set foreign_key_checks = 0;
insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id) values
  (1, '10000000-0000-4000-8000-000000000001', 'child of a later one', 3, 5, 5),
  (2, '10000000-0000-4000-8000-000000000002', 'Speicher für alle', 1, 2, null),
  (5, '10000000-0000-4000-8000-000000000005', 'hôte-東京', 9, 5, null);
set foreign_key_checks = 1;
insert into inventories (id, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size,
  allocation_ratio) values (1, 1, 1, 16, 0, 1, 16, 1, 16.0), (2, 1, 2, 65536, 512, 256, 65536, 256, 1.1),
  (4, 5, 3, 3, 0, 1, 3, 1, 0.9), (5, 5, 2, 1000, 0, 1, 1000, 1, 123456.7);
insert into resource_provider_traits (trait_id, resource_provider_id) values (1, 1), (1, 5), (7, 2), (7, 5);
insert into resource_provider_aggregates (resource_provider_id, aggregate_id) values (1, 1), (2, 1);
insert into consumers (id, uuid, project_id, user_id, generation, consumer_type_id) values
  (1, '30000000-0000-4000-8000-00000000000a', 1, 1, 1, 1), (2, '30000000-0000-4000-8000-00000000000b', 2, 1, 4, null),
  (3, '30000000-0000-4000-8000-00000000000c', 2, 1, 2, 1);
insert into allocations (id, resource_provider_id, consumer_id, resource_class_id, used) values
  (1, 1, '30000000-0000-4000-8000-00000000000a', 1, 2), (2, 1, '30000000-0000-4000-8000-00000000000a', 2, 1024),
  (3, 1, '30000000-0000-4000-8000-00000000000B', 1, 4), (6, 5, '30000000-0000-4000-8000-00000000000B', 3, 1),
  (7, 5, '30000000-0000-4000-8000-00000000000c', 2, 100);
set sql_mode = 'ALLOW_INVALID_DATES';
update resource_classes set created_at = '2024-02-30 12:34:56' where id = 2;
update resource_classes set created_at = '0000-05-05 12:34:56' where id = 3;
