#!/usr/bin/env python3
"""Runs jobs as soon as there are graphics processors for them.

Each line of the standard input is a job: how many processors it needs, and its command. The command finds the name of its host in $HOST.

    printf '2 echo train on $HOST\\n1 echo test on $HOST\\n' | PLACEMENT_URL=http://127.0.0.1:8778 python3 scheduler.py

The token in $PLACEMENT_TOKEN may be that of a member of the project in $PLACEMENT_PROJECT. The exit code is 1 if a job was refused or
failed, and 2 if a line is no job: then none is run.

Ctrl-C (SIGINT), SIGTERM and SIGHUP (unless nohup has it ignored) kill all jobs and give back what they had; the exit code is 130, 143 or
129. After SIGKILL nothing does that: the jobs go on, and their claims end after their term. So kill the jobs too.
"""
import os, signal, subprocess, sys, threading, time, uuid
import requests

URL = os.environ.get('PLACEMENT_URL', 'http://127.0.0.1:8778')
HEADERS = {'X-Auth-Token': os.environ.get('PLACEMENT_TOKEN', 'admin'), 'OpenStack-API-Version': 'placement 2.9'}
PROJECT = os.environ.get('PLACEMENT_PROJECT', 'ci')
TERM_SECONDS = int(os.environ.get('PLACEMENT_TERM', 60))  # seconds: a claim ends after this time, if this program dies
WAIT_SECONDS = 600  # then it waits anew
STOP_SECONDS = 10  # for so long it gives back after a signal; what is left then ends with its term
stop_at = float('inf')
stopping = threading.Event()
lock = threading.Lock()  # no job begins while those that run are killed
running = set()
done = []
told = []
active = set()  # the consumers whose threads have not ended. After a signal during join(), is_alive() of Python 3.11 is wrong


class Refused(Exception):
    """An answer that will not be another one later."""


def stop(number, _frame):
    for each in signals:  # a second one would interrupt what gives back
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit(128 + number)


def tell(text):
    sys.stderr.write(f'{text}\n')  # at once: print writes the end of the line by itself, after that of another thread


def tell_once(text):
    if not told:
        told.append(text)
        tell(text)


def call(method, path, body=None, wait=0, until=float('inf')):
    """Sends a request until it is answered; each of them may be sent twice. Returns None if time.monotonic() comes to `until` before."""
    headers = {**HEADERS, **({'Prefer': f'wait={wait}'} if wait else {})}
    failures = 0
    while True:
        try:
            patience = max(1, min(wait + 30, until - time.monotonic()))
            answer = requests.request(method, URL + path, json=body, headers=headers, timeout=(min(5, patience), patience))
            if answer.status_code not in (429, 502, 503, 504):  # 502 and 504 are of proxies
                return answer
            after = answer.headers.get('Retry-After', '')
            pause = max(1, int(after)) if after.isdecimal() else 1  # a proxy may send a date
        except requests.RequestException as error:
            if isinstance(error, ValueError):  # the address is none, such as one without http://
                raise Refused(f'PLACEMENT_URL: {error}')
            pause = 1
            failures += 1
            if failures == 5:  # a lost answer is nothing to tell
                tell_once(f'No answer from {URL}. It is asked until it answers: {error}')
        if time.monotonic() + pause >= min(until, stop_at):
            return None
        if stopping.is_set():
            time.sleep(pause)
        else:
            stopping.wait(pause)


def error_of(answer):
    try:
        error = answer.json()['errors'][0]
        return {'code': error.get('code'), 'detail': error['detail']}
    except (ValueError, LookupError, TypeError, AttributeError):  # it is of a proxy, or of another program
        return {'code': None, 'detail': f'{answer.status_code} {answer.reason}: {answer.text[:200]}'}


def found(consumer):
    """What `place` returns, for a claim whose answer was lost; None if it has ended. Part of its term is over, so it gets a new one."""
    held = answered(call('GET', f'/allocations/{consumer}'))
    generation = held.get('consumer_generation')
    asked = time.monotonic()
    renewed = renew(consumer, generation) if generation is not None else None
    if generation is None or (renewed is not None and renewed.status_code == 404):
        return None
    answered(renewed)
    return host_of(held), generation, asked + TERM_SECONDS


def host_of(held):
    return next(iter(held['resource_providers'].values()))['name']


def answered(answer):
    if answer is None:
        raise Refused('it is stopped')
    if not answer.ok:
        raise Refused(error_of(answer)['detail'])
    return answer.json()


def renew(consumer, generation, until=float('inf')):
    return call('PUT', f'/consumers/{consumer}/term', {'expires_in': TERM_SECONDS, 'consumer_generation': generation}, until=until)


def place(consumer, processors, line):
    """
    Waits until there is room, also below a limit of the project.

    Returns the name of the host, the generation of the consumer, and when its term ends. If no answer came until the term of an earlier
    attempt had ended, the consumer is claimed again, and its generation is not 1.
    """
    claim = {'candidates': f'resources=PGPU:{processors}&order=free:PGPU', 'project_id': PROJECT, 'user_id': PROJECT,
             'consumer_generation': None, 'consumer_type': 'JOB', 'expires_in': TERM_SECONDS}
    wait = 0  # the first time it is asked at once, so that it can be told why a job waits
    while True:
        answer = call('PUT', f'/allocations/{consumer}', claim, wait)
        if answer is None:
            raise Refused('it is stopped')
        if answer.ok:
            placed = answer.json()
            return host_of(placed), placed['consumer_generation'], time.monotonic() + TERM_SECONDS
        error = error_of(answer)
        if error['code'] == 'placement.concurrent_update':  # the answer of an earlier attempt was lost
            earlier = found(consumer)
            if earlier is not None:
                return earlier
            stopping.wait(1)
            continue
        if error['code'] not in ('placement.no_candidates', 'placement.limit_exceeded'):
            raise Refused(error['detail'])
        if stopping.is_set():
            raise Refused('it waits no more')
        if not wait:
            tell(f"{line}: waits. {error['detail']}")
        wait = WAIT_SECONDS


def start(command, host):
    """None after a signal."""
    with lock:
        if stopping.is_set():
            return None
        job = subprocess.Popen(command, shell=True, env={**os.environ, 'HOST': host}, start_new_session=True)
        running.add(job)
        return job


def kill(job):
    """With all that it has started."""
    try:
        os.killpg(job.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just ended
        pass


def work(line, consumer):
    try:
        run(line, consumer)
    finally:
        active.discard(consumer)


def run(line, consumer):
    processors, command = line.split(maxsplit=1)
    try:
        host, generation, ends = place(consumer, int(processors), line)
    except Refused as refusal:
        tell(f'{line}: {refusal}')
        return
    try:
        job = start(command, host)
    except (OSError, ValueError) as error:  # such as no memory for a process
        tell(f'{line}: {error}')
        job = None
    while job is not None:
        try:
            if job.wait(TERM_SECONDS / 3) == 0:
                done.append(line)
            with lock:
                running.discard(job)
            break
        except subprocess.TimeoutExpired:
            asked = time.monotonic()
            answer = renew(consumer, generation, until=ends)
            if answer is not None and answer.ok:
                ends = asked + TERM_SECONDS
            elif not stopping.is_set() and job.poll() is None:
                kill(job)  # too late: the processors may be someone else's by now
                tell(f'{line}: its claim is lost, and it is stopped')
                return
    call('DELETE', f'/allocations/{consumer}')


signals = [signal.SIGINT, signal.SIGTERM]
if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # by nohup
    signals.append(signal.SIGHUP)
for number in signals:
    signal.signal(number, stop)
lines = [line.strip() for line in sys.stdin if line.strip()]
for line in lines:
    if not line.split()[0].isdecimal() or len(line.split()) < 2:
        tell(f'{line}: a line is the number of processors and a command, such as: 2 echo train')
        sys.exit(2)
jobs = {str(uuid.uuid4()): line for line in lines}
try:
    for consumer, line in jobs.items():
        active.add(consumer)
        threading.Thread(target=work, args=(line, consumer), daemon=True).start()
    while active:
        time.sleep(0.1)
except (SystemExit, RuntimeError):  # a signal, or no thread more can start: each thread gives back what it has, and ends
    stop_at = time.monotonic() + STOP_SECONDS
    stopping.set()
    with lock:
        for job in running:
            kill(job)
    while time.monotonic() < stop_at and active:
        for consumer in list(active):
            call('DELETE', f'/waiting/{consumer}', until=stop_at)  # 404 if its claim does not wait
        time.sleep(0.1)
    raise
sys.exit(0 if len(done) == len(lines) else 1)
