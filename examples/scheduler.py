#!/usr/bin/env python3
"""Runs jobs as soon as there are graphics processors for them.

Each line of the standard input is a job: how many processors it needs, and its command. The command finds the name of its host in $HOST.

    printf '2 echo train on $HOST\\n1 echo test on $HOST\\n' | PLACEMENT_URL=http://127.0.0.1:8778 python3 scheduler.py

The token in $PLACEMENT_TOKEN may be that of a member of the project in $PLACEMENT_PROJECT. The exit code is 1 if a job was refused or failed, and 2 if
a line is no job: then none is run.
"""
import os, signal, subprocess, sys, threading, time, uuid
import requests

URL = os.environ.get('PLACEMENT_URL', 'http://127.0.0.1:8778')
HEADERS = {'X-Auth-Token': os.environ.get('PLACEMENT_TOKEN', 'admin'), 'OpenStack-API-Version': 'placement 2.9'}
PROJECT = os.environ.get('PLACEMENT_PROJECT', 'ci')
TERM_SECONDS = int(os.environ.get('PLACEMENT_TERM', 60))  # a claim ends after this time, if this program dies
WAIT_SECONDS = 600  # then it waits anew
done = []


class Refused(Exception):
    """An answer that will not be another one later."""


def call(method, path, body=None, wait=0, until=float('inf')):
    """Sends a request until it is answered; each of them may be sent twice. Returns None if time.monotonic() comes to `until` before."""
    headers = {**HEADERS, **({'Prefer': f'wait={wait}'} if wait else {})}
    while True:
        try:
            patience = max(1, min(wait + 30, until - time.monotonic()))
            answer = requests.request(method, URL + path, json=body, headers=headers, timeout=(min(5, patience), patience))
            if answer.status_code not in (429, 502, 503, 504):  # 502 and 504 are of proxies
                return answer
            after = answer.headers.get('Retry-After', '')
            pause = int(after) if after.isdigit() else 1  # a proxy may send a date
        except requests.RequestException:
            pause = 1
        if time.monotonic() + pause >= until:
            return None
        time.sleep(pause)


def error_of(answer):
    try:
        return answer.json()['errors'][0]
    except (ValueError, KeyError):  # not an answer of the service: a proxy's, or another program at this address
        return {'code': None, 'detail': f'{answer.status_code} {answer.reason}: {answer.text[:200]}'}


def host_of(consumer):
    """The name of the host of what it has."""
    path = f'/holdings?project_id={PROJECT}'
    while path:
        answer = call('GET', path)
        if not answer.ok:
            raise Refused(error_of(answer)['detail'])
        page = answer.json()
        for held in page['holdings']:
            if held['consumer'] == consumer:
                return held['resource_provider']['name']
        path = page.get('holdings_links', [{'href': None}])[0]['href']
    raise Refused('another program has released what it had')


def place(consumer, processors, line):
    """Waits until there is room, also below a limit of the project. Returns the name of the host."""
    claim = {'candidates': f'resources=PGPU:{processors}&order=free:PGPU', 'project_id': PROJECT, 'user_id': PROJECT,
             'consumer_generation': None, 'consumer_type': 'JOB', 'expires_in': TERM_SECONDS}
    wait = 0  # the first time it is asked at once, so that it can be told why a job waits
    while True:
        answer = call('PUT', f'/allocations/{consumer}', claim, wait)
        if answer.ok:
            return next(iter(answer.json()['resource_providers'].values()))['name']
        error = error_of(answer)
        if error['code'] == 'placement.concurrent_update':  # the answer of an earlier attempt was lost
            return host_of(consumer)
        if error['code'] not in ('placement.no_candidates', 'placement.limit_exceeded'):
            raise Refused(error['detail'])
        if not wait:
            print(f"{line}: waits. {error['detail']}", file=sys.stderr)
        wait = WAIT_SECONDS


def run(line):
    processors, command = line.split(maxsplit=1)
    consumer = str(uuid.uuid4())
    try:
        host = place(consumer, int(processors), line)
    except Refused as refusal:
        print(f'{line}: {refusal}', file=sys.stderr)
        return
    ends = time.monotonic() + TERM_SECONDS
    job = subprocess.Popen(command, shell=True, env={**os.environ, 'HOST': host}, start_new_session=True)
    while True:
        try:
            if job.wait(TERM_SECONDS / 3) == 0:
                done.append(line)
            break
        except subprocess.TimeoutExpired:
            renewal = {'expires_in': TERM_SECONDS, 'consumer_generation': 1}
            asked = time.monotonic()
            answer = call('PUT', f'/consumers/{consumer}/term', renewal, until=ends)
            if answer is not None and answer.ok:
                ends = asked + TERM_SECONDS
                continue
            os.killpg(job.pid, signal.SIGKILL)  # with all that it has started. Too late: the processors may be someone else's by now
            print(f'{line}: its claim is lost, and it is stopped', file=sys.stderr)
            return
    call('DELETE', f'/allocations/{consumer}')


lines = [line.strip() for line in sys.stdin if line.strip()]
for line in lines:
    if not line.split()[0].isdigit() or len(line.split()) < 2:
        print(f'{line}: a line is the number of processors and a command, such as: 2 echo train', file=sys.stderr)
        sys.exit(2)
jobs = [threading.Thread(target=run, args=(line,)) for line in lines]
for job in jobs:
    job.start()
for job in jobs:
    job.join()
sys.exit(0 if len(done) == len(lines) else 1)
