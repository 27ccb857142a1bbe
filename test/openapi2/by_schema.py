"""Sends requests by openapi-2.yaml (as JSON), and checks each body by its schema. Arguments: the file, the URL of a service."""
import json, re, sys, urllib.request, uuid
import jsonschema

[_, file, url] = sys.argv
document = json.load(open(file))


def patterns(part):
    if isinstance(part, dict):
        if isinstance(part.get('pattern'), str):
            re.compile(part['pattern'])
            yield part['pattern']
        for key, value in part.items():
            if key != 'example':
                yield from patterns(value)
    elif isinstance(part, list):
        for value in part:
            yield from patterns(value)


def check(schema, value):
    jsonschema.Draft202012Validator({**schema, 'components': document['components']}).validate(value)


def contents(part):
    if isinstance(part, dict):
        if 'schema' in part and 'example' in part and 'in' not in part:
            check(part['schema'], part['example'])
            yield part
        for value in part.values():
            yield from contents(value)


def call(operation, body=None, **values):
    for path, item in document['paths'].items():
        for method, described in item.items():
            if described['operationId'] == operation:
                return send(method.upper(), path.format(**values), described, body)
    raise KeyError(operation)


def send(method, path, described, body):
    if body is not None:
        check(described['requestBody']['content']['application/json']['schema'], body)
    version = f"placement {document['info']['version']}"
    headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': version, 'Content-Type': 'application/json'}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url + path, data, headers, method=method)) as answer:
        text = answer.read()
        shown = json.loads(text) if text else None
        if shown is not None:
            check(described['responses'][str(answer.status)]['content']['application/json']['schema'], shown)
        return answer.status, shown


print(len(list(patterns(document))))
print(len(list(contents(document['paths']))))
job = str(uuid.uuid4())
claim = {'candidates': ['resources=PGPU:2'], 'project_id': 'ci', 'user_id': 'ci', 'consumer_generation': None, 'consumer_type': 'JOB'}
_, placed = call('replaceAllocations', claim, consumer_uuid=job)
print([holding['resources'] for holding in placed['allocations'].values()][0])
_, read = call('showAllocations', consumer_uuid=job)
print(read['consumer_generation'])
print(call('deleteAllocations', consumer_uuid=job)[0])
