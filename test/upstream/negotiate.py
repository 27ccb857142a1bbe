"""Negotiates as python-ironicclient does, and prints the version that it arrives at. Arguments: the URL of a service, a version or `default`."""
import sys
from ironicclient import exc
from ironicclient.common.http import LATEST_VERSION, SessionClient
from keystoneauth1 import session, token_endpoint

[_, url, version] = sys.argv
client = SessionClient(
    os_ironic_api_version=LATEST_VERSION if version == 'default' else version,
    api_version_select_state='default' if version == 'default' else 'user',
    max_retries=1, retry_interval=0, session=session.Session(auth=token_endpoint.Token(url, 'admin')),
    endpoint_override=url)
try:
    _, body = client.json_request('GET', '/resource_providers')
    print(client.os_ironic_api_version, client.api_version_select_state, sorted(body))
except exc.UnsupportedVersion as error:
    print(' '.join(str(error).split()))
