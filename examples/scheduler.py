#!/usr/bin/env python3
"""Runs jobs as soon as there are graphics processors for them.

Each line of the standard input is a job: how many processors it needs, and its command. The command finds the name of its host in $HOST.

    printf '2 echo train on $HOST\\n1 echo test on $HOST\\n' | PLACEMENT_URL=http://127.0.0.1:8778 python3 scheduler.py
"""
import os, subprocess, sys, threading, time, uuid
import requests

URL = os.environ.get('PLACEMENT_URL', 'http://127.0.0.1:8778')
HEADERS = {'X-Auth-Token': os.environ.get('PLACEMENT_TOKEN', 'admin'), 'OpenStack-API-Version': 'placement 2.7'}
PROJECT = os.environ.get('PLACEMENT_PROJECT', 'ci')
TERM_SECONDS = 60  # a claim ends after this time, if this program dies
refused = []


def call(method, path, body=None, prefer=None):
    """Sends a request until it is answered. Each of them may be sent twice."""
    while True:
        try:
            headers = {**HEADERS, **({'Prefer': prefer} if prefer else {})}
            answer = requests.request(method, URL + path, json=body, headers=headers, timeout=40)
            if answer.status_code not in (429, 503):
                return answer
            time.sleep(int(answer.headers.get('Retry-After', 1)))
        except requests.RequestException:
            time.sleep(1)


def place(consumer, processors):
    """Waits until there is room, also below a limit of the project. Returns the name of the host; None if the claim is refused."""
    claim = {'candidates': f'resources=PGPU:{processors}&order=free:PGPU', 'project_id': PROJECT, 'user_id': PROJECT,
             'consumer_generation': None, 'consumer_type': 'JOB', 'expires_in': TERM_SECONDS}
    token = call('GET', '/changes').json()['next']  # from before the first attempt, so that no change is missed
    while True:
        answer = call('PUT', f'/allocations/{consumer}', claim)
        if answer.ok:
            return next(iter(answer.json()['resource_providers'].values()))['name']
        error = answer.json()['errors'][0]
        if error['code'] == 'placement.concurrent_update':  # the answer of an earlier attempt was lost
            [provider] = call('GET', f'/allocations/{consumer}').json()['allocations']
            return call('GET', f'/resource_providers/{provider}').json()['name']
        if error['code'] not in ('placement.no_candidates', 'placement.limit_exceeded'):
            print(error['detail'], file=sys.stderr)
            refused.append(consumer)
            return None
        changes = call('GET', f'/changes?resource_class=PGPU&since={token}', prefer='wait=30')
        token = (changes if changes.ok else call('GET', '/changes')).json()['next']


def run(line):
    processors, command = line.split(maxsplit=1)
    consumer = str(uuid.uuid4())
    host = place(consumer, int(processors))
    if host is None:
        return
    job = subprocess.Popen(command, shell=True, env={**os.environ, 'HOST': host})
    while True:
        try:
            job.wait(TERM_SECONDS / 3)
            break
        except subprocess.TimeoutExpired:
            if not call('PUT', f'/consumers/{consumer}/term', {'expires_in': TERM_SECONDS, 'consumer_generation': 1}).ok:
                job.kill()  # too late: the processors may be someone else's by now
    call('DELETE', f'/allocations/{consumer}')


jobs = [threading.Thread(target=run, args=(line,)) for line in sys.stdin if line.strip()]
for job in jobs:
    job.start()
for job in jobs:
    job.join()
sys.exit(1 if refused else 0)
