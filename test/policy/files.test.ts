/** Policy files: how they are combined, and that they are read again when they change. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs, {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import { printCheck } from '../../src/access/policy/evaluate.ts';
import {
  loadRules,
  openPolicy,
  type Policy,
  type PolicyLog,
  type PolicySettings,
} from '../../src/access/policy/policy.ts';
import { remembering } from '../../src/text/cache.ts';
import { identity } from './people.ts';

type Place = {
  readonly folder: string;
  readonly policyFile: string;
  readonly settings: PolicySettings;
  readonly log: PolicyLog;
  /** The log since the last call, as `level: line`. */
  logged(): readonly string[];
  write(file: string, text: string): void;
};

function inPlace(use: (place: Place) => void, more: Partial<PolicySettings> = {}): void {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'placement-policy-'));
  const policyFile = path.join(folder, 'policy.yaml');
  let lines: string[] = [];
  const at = (level: string) => (line: string) => void lines.push(`${level}: ${line.replaceAll(`${folder}/`, '')}`);
  try {
    use({
      folder,
      policyFile,
      settings: {
        policyFile,
        policyDirs: [path.join(folder, 'policy.d')],
        policyDefaultRule: 'default',
        enforceScope: true,
        enforceNewDefaults: true,
        ...more,
      },
      log: { info: at('info'), warn: at('warn'), error: at('error') },
      logged: () => {
        const said = lines;
        lines = [];
        return said;
      },
      write: (file, text) => {
        mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
        writeFileSync(path.join(folder, file), text);
      },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const listing = 'placement:traits:list';
/** One object for the same roles, as a cached token has: the results that the policy caches for it are dropped with the rules. */
const identityWith = remembering((roles: string) => identity({ roles: roles.split(',') }));
const allows = (policy: Policy, roles: readonly string[], rule = listing): boolean =>
  policy.allows(rule, identityWith(roles.join()), { project_id: 'p1' });

test('a change right after another one is read, although the file system notes the same times for both', (t) => {
  inPlace(({ settings, log, write }) => {
    const atMs = Date.now();
    const { statSync } = fs;
    const statsOf = (name: string, options: fs.StatSyncOptions) => {
      const stats = statSync(name, options);
      return stats && Object.assign(stats, { mtimeMs: atMs, ctimeMs: atMs });
    };
    t.mock.method(Date, 'now', () => atMs);
    const { mock } = t.mock.method(fs, 'statSync', statsOf as typeof statSync); // as the policy calls it
    syncBuiltinESMExports();
    try {
      write('policy.yaml', '"placement:traits:list": role:a\n');
      const policy = openPolicy(settings, log, 0);
      write('policy.yaml', '"placement:traits:list": role:b\n');
      assert.deepEqual([allows(policy, ['a']), allows(policy, ['b'])], [false, true]);
    } finally {
      mock.restore();
      syncBuiltinESMExports();
    }
  });
});

suite('the rules in effect', () => {
  test('a file wins over the defaults, folders over the file, and later files of a folder over earlier ones', () => {
    inPlace(({ settings, log, write, logged }) => {
      write('policy.yaml', '"placement:traits:list": role:a\n"placement:traits:show": rule:own\nown: role:a\n');
      write('policy.d/10-b.yaml', '"placement:traits:list": role:b\n"placement:usages": role:b\n');
      write('policy.d/20-c.json', '{"placement:usages": "role:c"}');
      write('policy.d/.hidden.yaml', '"placement:usages": role:hidden\n');
      write('policy.d/deeper/d.yaml', '"placement:usages": role:deeper\n');
      const { byName } = loadRules(settings, log);
      const text = (name: string): string => printCheck(byName.get(name)?.check ?? assert.fail(name));
      assert.deepEqual(
        [text('placement:traits:show'), text('placement:traits:list'), text('placement:usages'), text('own')],
        ['rule:own', 'role:b', 'role:c', 'role:a'],
      );
      assert.equal(text('placement:traits:update'), 'rule:admin_or_service_api');
      assert.deepEqual(logged(), []);
    });
  });

  test('a rule that no request and no other rule uses gives a warning at the start', () => {
    inPlace(({ settings, log, logged, write }) => {
      write('policy.yaml', 'ours: role:x\n');
      openPolicy(settings, log, 0);
      assert.match(logged().join(), /^warn: The policy rule ours of policy\.yaml has no effect/);
    });
  });

  test('a base rule in a file changes the rules that refer to it, also with the deprecated defaults', () => {
    inPlace(
      ({ settings, log, write }) => {
        write('policy.yaml', 'service_api: role:robot\n');
        const policy = openPolicy(settings, log, 0);
        const reshape = 'placement:reshaper:reshape';
        assert.deepEqual(
          [['robot'], ['service'], ['admin']].map((roles) => allows(policy, roles, reshape)),
          [true, false, false],
        );
        assert.equal(allows(policy, ['admin']), true);
      },
      { enforceNewDefaults: false },
    );
  });

  test('between two checks of the files the same rules hold', () => {
    inPlace(({ settings, log, write }) => {
      write('policy.yaml', '"placement:traits:list": role:a\n');
      const policies = [60_000, 0].map((everyMs) => openPolicy(settings, log, everyMs));
      write('policy.yaml', '"placement:traits:list": role:b\n');
      assert.deepEqual(
        policies.map((policy) => [['a'], ['b']].map((roles) => allows(policy, roles))),
        [
          [true, false],
          [false, true],
        ],
      );
    });
  });

  test('a rule under the former name of its default still counts', () => {
    inPlace(({ settings, log, write }) => {
      write('policy.yaml', '"rule:admin_api": role:old\n');
      const policy = openPolicy(settings, log, 0);
      assert.deepEqual([allows(policy, ['old']), allows(policy, ['service'])], [true, false]);
      write(
        'policy.yaml',
        '"rule:admin_api": "rule:admin_or_service_api"\n"placement:traits:list": "rule:service_api"\n',
      );
      assert.deepEqual([allows(policy, ['old']), allows(policy, ['admin'], 'placement:traits:show')], [false, true]);
    });
  });

  test('policy_default_rule decides if there is no rule of the requested name', () => {
    inPlace(
      ({ settings, log, write, logged }) => {
        write('policy.yaml', 'fallback: role:x\n"placement:traits:list": "rule:nowhere"\n');
        const policy = openPolicy(settings, log, 0);
        assert.deepEqual([allows(policy, ['x']), allows(policy, ['admin'])], [true, false]);
        assert.deepEqual([allows(policy, ['x'], 'unheard'), allows(policy, ['y'], 'unheard')], [true, false]);
        assert.match(
          logged().join(),
          /warn: The policy rule placement:traits:list refers to rules that do not exist: nowhere/,
        );
      },
      { policyDefaultRule: 'fallback' },
    );
  });

  test('behind not, what cannot be evaluated allows no request, also with a default rule and in a printed policy', () => {
    const broken = [
      'not http://a/b',
      'not badcheck',
      'not rule:nothing',
      'not absent:x',
      'not (role:a or',
      'not rule:two',
    ];
    inPlace(
      ({ settings, log, write, folder }) => {
        for (const rule of broken) {
          for (const fallback of ['', 'fallback: "!"\n', 'fallback: "role:x"\n']) {
            const text = (own: string): string => `${fallback}two: badcheck\n"${listing}": ${JSON.stringify(own)}\n`;
            write('policy.yaml', text(rule));
            const { check } = loadRules(settings, log).byName.get(listing) ?? assert.fail(folder);
            for (const own of [rule, printCheck(check)]) {
              write('policy.yaml', text(own));
              const policy = openPolicy(settings, log, 0);
              for (const roles of [[], ['reader'], ['admin', 'service']]) {
                assert.equal(allows(policy, roles), false, `${own} with ${fallback}`);
              }
            }
          }
        }
      },
      { policyDefaultRule: 'fallback' },
    );
  });

  test('a token without the system scope does not match a rule that requires it', () => {
    inPlace(({ settings, log, write }) => {
      write('policy.yaml', `"${listing}": not system:all\n"placement:traits:show": system:None\n`);
      const policy = openPolicy(settings, log, 0);
      assert.deepEqual([allows(policy, []), allows(policy, [], 'placement:traits:show')], [true, false]);
    });
  });

  test('a circle of rules denies and is reported, and so is a malformed rule', () => {
    inPlace(({ settings, log, write, logged }) => {
      write('policy.yaml', 'a: "rule:b"\nb: "not rule:a"\n"placement:traits:list": "rule:a"\nc: "role:x and"\n');
      const policy = openPolicy(settings, log, 0);
      assert.equal(allows(policy, ['admin']), false);
      assert.equal(allows(policy, ['x'], 'c'), false);
      const said = logged();
      assert.equal(said.filter((line) => /warn: The policy rule [ab] refers to itself/.test(line)).length, 2);
      assert.ok(said.some((line) => /warn: policy\.yaml: c: The rule "role:x and" cannot be parsed/.test(line)));
    });
  });

  test('a broken file makes the start fail, with all problems in the message', () => {
    inPlace(({ settings, log, write }) => {
      write('policy.yaml', 'a: 1\nb: 2\n');
      assert.throws(() => openPolicy(settings, log, 0), { name: 'ConfigError', message: /a must be.*\n.*b must be/ });
      write('policy.yaml', '');
      write('policy.d', '');
      assert.throws(() => openPolicy(settings, log, 0), { name: 'ConfigError', message: /policy\.d/ });
    });
  });
});

suite('changes', () => {
  test('changed files, also those of a folder, count for the next decision', () => {
    inPlace(({ settings, log, write, logged, folder, policyFile }) => {
      const policy = openPolicy(settings, log, 0);
      assert.deepEqual([allows(policy, ['admin']), allows(policy, ['x'])], [true, false]);
      write('policy.yaml', '"placement:traits:list": role:x\n');
      assert.deepEqual([allows(policy, ['admin']), allows(policy, ['x'])], [false, true]);
      assert.deepEqual(logged(), ['info: The policy rules were read again: policy.yaml.']);
      write('policy.yaml', '"placement:traits:list": role:y\n');
      assert.deepEqual([allows(policy, ['x']), allows(policy, ['y'])], [false, true]);
      write('policy.d/a.yaml', '"placement:traits:list": role:z\n');
      assert.deepEqual([allows(policy, ['y']), allows(policy, ['z'])], [false, true]);
      // An older file replaces the other one.
      write('new.yaml', '"placement:traits:list": role:w\n"placement:traits:show": role:w\n');
      utimesSync(path.join(folder, 'new.yaml'), 1000, 1000);
      renameSync(path.join(folder, 'new.yaml'), policyFile);
      assert.deepEqual([allows(policy, ['w']), allows(policy, ['w'], 'placement:traits:show')], [false, true]);
      unlinkSync(path.join(folder, 'policy.d/a.yaml'));
      assert.deepEqual([allows(policy, ['z']), allows(policy, ['w'])], [false, true]);
    });
  });

  test('with a broken file the last good rules stay, and the log gives the reason, once', () => {
    inPlace(({ settings, log, write, logged, policyFile }) => {
      write('policy.yaml', '"placement:traits:list": role:x\n');
      const policy = openPolicy(settings, log, 0);
      for (const broken of ['"placement:traits:list": [\n', '"placement:traits:list": 5\n', '- \n', '\xff\u0000: {']) {
        write('policy.yaml', broken);
        for (let attempt = 0; attempt < 3; attempt += 1) {
          assert.deepEqual([allows(policy, ['admin']), allows(policy, ['x'])], [false, true]);
        }
        const said = logged();
        assert.match(said[0] ?? '', /^error: policy\.yaml.*\. The policy rules stay as they were\.$/);
        assert.equal(new Set(said).size, said.length, 'no line is repeated');
      }
      write('policy.d/a.yaml', '"placement:traits:list": role:z\n');
      assert.equal(allows(policy, ['z']), false, 'one broken file keeps the rules of all files unchanged');
      logged();

      unlinkSync(policyFile);
      assert.deepEqual([allows(policy, ['admin']), allows(policy, ['x']), allows(policy, ['x'])], [false, true, true]);
      assert.deepEqual(logged(), ['error: The policy file policy.yaml is gone. The policy rules stay as they were.']);
      write('policy.yaml', '{}');
      assert.deepEqual([allows(policy, ['x']), allows(policy, ['z'])], [false, true]);
      assert.deepEqual(logged(), ['info: The policy rules were read again: policy.yaml, policy.d/a.yaml.']);
    });
  });

  test('the last good rules hold after a file was emptied, a folder removed, or a link lost its file', () => {
    inPlace(({ settings, log, write, logged, folder }) => {
      const rule = `"${listing}": role:x\n`;
      const only = (policy: Policy, why: string) =>
        assert.deepEqual([allows(policy, ['admin']), allows(policy, ['x'])], [false, true], why);
      write('policy.yaml', rule);
      write('policy.d/a.yaml', '"placement:traits:show": role:x\n');
      const policy = openPolicy(settings, log, 0);
      const stays = (break_: () => void, mend: () => void, line: RegExp) => {
        logged();
        break_();
        only(policy, String(line));
        assert.equal(allows(policy, ['admin'], 'placement:traits:show'), false, String(line));
        assert.match(logged().join(), line);
        mend();
        only(policy, 'mended');
        assert.match(logged().join(), /read again/);
      };
      const inFolder = path.join(folder, 'policy.d');
      const folderRule = () => write('policy.d/a.yaml', '"placement:traits:show": role:x\n');
      stays(
        () => write('policy.yaml', ' \n'),
        () => write('policy.yaml', rule),
        /policy\.yaml is empty\. Write \{\}/,
      );
      stays(() => write('policy.d/a.yaml', ''), folderRule, /a\.yaml is empty/);
      stays(() => rmSync(inFolder, { recursive: true }), folderRule, /policy folder policy\.d is gone/);
      const dangling = path.join(inFolder, 'a.yaml');
      stays(
        () => {
          unlinkSync(dangling);
          symlinkSync(path.join(folder, 'nothing.yaml'), dangling);
        },
        () => {
          unlinkSync(dangling);
          folderRule();
        },
        /a\.yaml is a link to a file that does not exist/,
      );
      unlinkSync(dangling);
      symlinkSync(path.join(folder, 'nothing.yaml'), dangling);
      assert.throws(() => openPolicy(settings, log, 0), { name: 'ConfigError', message: /a\.yaml is a link/ });
    });
  });

  test('a change that could not be read, since too many files were open, is read afterwards', () => {
    inPlace(({ write, folder, policyFile }) => {
      write('policy.yaml', `"${listing}": role:x\n`);
      const script = path.join(import.meta.dirname, 'too_many_open_files.ts');
      const limited = 'ulimit -n 64 && exec "$0" "$@"';
      const { stdout, stderr } = spawnSync('/bin/sh', ['-c', limited, process.execPath, script, folder, policyFile], {
        encoding: 'utf8',
      });
      const { during, after, errors } = JSON.parse(stdout || assert.fail(stderr)) as Record<string, unknown>; // below
      assert.deepEqual([during, after], [['x'], ['y']]);
      assert.match(String(errors), /EMFILE/);
    });
  });

  test('with a file that cannot be read the last good rules stay', () => {
    inPlace(({ settings, log, write, logged, policyFile }) => {
      write('policy.yaml', '"placement:traits:list": role:x\n');
      const policy = openPolicy(settings, log, 0);
      unlinkSync(policyFile);
      mkdirSync(policyFile);
      assert.equal(allows(policy, ['x']), true);
      assert.match(logged()[0] ?? '', /^error: The policy file policy\.yaml cannot be read: EISDIR/);
      rmdirSync(policyFile);
      write('policy.yaml', '"placement:traits:list": role:y\n');
      assert.deepEqual([allows(policy, ['x']), allows(policy, ['y'])], [false, true]);
      assert.match(logged()[0] ?? '', /read again/);
    });
  });
});
