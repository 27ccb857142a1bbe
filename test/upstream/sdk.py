"""Uses a placement service by openstacksdk, and prints what is sent and what comes back. Argument: the URL of the service."""
import sys
import openstack
from keystoneauth1 import session, token_endpoint

url = sys.argv[1]
host = '00000000-0000-4000-8000-00000000000a'
connection = openstack.connection.Connection(
    session=session.Session(auth=token_endpoint.Token(url, 'admin')), placement_endpoint_override=url)
placement = connection.placement


def shown(resource):
    return {key: value for key, value in sorted(resource.to_dict().items()) if key not in ('location', 'links')}


provider = placement.create_resource_provider(name='host-1', id=host)
print('created', shown(provider))
print('found', [shown(each) for each in placement.resource_providers(name='host-1')])
print('renamed', shown(placement.update_resource_provider(provider, name='host-one')))
placement.create_resource_class(name='CUSTOM_LICENCE')
print('classes', [each.name for each in placement.resource_classes() if each.name.startswith('CUSTOM_')])
for version in ('1.0', '1.14', '1.28', '1.39', 'latest', None):
    answer = placement.get(f'/resource_providers/{host}', microversion=version)
    print(version, answer.status_code, answer.headers['openstack-api-version'], sorted(answer.json()))
body = {'resource_provider_generation': 0, 'inventories': {'VCPU': {'total': 8}}}
answer = placement.put(f'/resource_providers/{host}/inventories', json=body, microversion='1.39')
print('inventories', answer.status_code, answer.json())
answer = placement.get('/allocation_candidates?resources=VCPU:1', microversion='1.39')
print('candidates', answer.status_code, answer.json())
answer = placement.get('/consumers', microversion='2.6', raise_exc=False)
print('version 2', answer.status_code if '--ours' in sys.argv else 'differs')
placement.delete_resource_class('CUSTOM_LICENCE')
placement.delete_resource_provider(provider)
print('left', [each.name for each in placement.resource_providers()])
