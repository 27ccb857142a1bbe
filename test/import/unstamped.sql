delete from alembic_version
