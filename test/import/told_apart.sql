alter table consumers modify uuid varchar(36) character set utf8 collate utf8_bin not null;
alter table allocations modify consumer_id varchar(36) character set utf8 collate utf8_bin not null;
alter table projects modify external_id varchar(255) character set utf8 collate utf8_bin not null;
insert into consumers (id, uuid, project_id, user_id, generation) values (9, '30000000-0000-4000-8000-00000000000A', 1, 1, 1);
insert into projects (id, external_id) values (9, 'PROJET-é')
