import type { Config } from './config.ts';
import {
  boolean,
  choice,
  databaseUrl,
  endpointInterface,
  integer,
  list,
  mainDatabaseUrl,
  microversion,
  type OptionType,
  shapes,
  text,
  texts,
} from './option_type.ts';

/** Which values an option may have, and how they are read. */
export type OptionSpec<T> = {
  readonly type: OptionType<T>;
  /** One sentence for operators: what the option is for. */
  readonly help: string;
  /** The value is never shown. A database URL is shown without its password. */
  readonly secret?: true;
  /** Older names, `[section, option]`. They are read if the same file does not have the option itself. */
  readonly formerly?: readonly (readonly [section: string, name: string])[];
  /** An option of Keystone's authentication plugin. It is read from the section named by `auth_section`. */
  readonly plugin?: true;
  /** The path is relative to the directories of the configuration. */
  readonly beside?: true;
};

/** Every option of `Config`, in the order of `--show-config`. */
export const optionSpecs: {
  readonly [G in keyof Config]: { readonly [O in keyof Config[G]]: OptionSpec<NonNullable<Config[G][O]>> };
} = {
  default: {
    debug: { type: boolean, help: 'Log at level debug.' },
    useJson: {
      type: boolean,
      help: "true: log lines in JSON; false: in oslo.log's form, with the formats below; unset: JSON, but not in a terminal.",
    },
    logFile: { type: text, help: 'The file to log to, instead of standard error.', formerly: [['DEFAULT', 'logfile']] },
    logDir: {
      type: text,
      help: 'The folder of log_file; without log_file, of placement-api.log.',
      formerly: [['DEFAULT', 'logdir']],
    },
    loggingContextFormatString: { type: text, help: 'The form of a line about a request.' },
    loggingDefaultFormatString: { type: text, help: 'The form of any other line.' },
    loggingUserIdentityFormat: { type: text, help: 'The text that replaces %(user_identity)s.' },
  },
  api: {
    authStrategy: {
      type: choice('keystone', 'noauth2'),
      help: 'Authentication by Keystone, or none (noauth2: the token is the user; for tests and trusted networks).',
      formerly: [['DEFAULT', 'auth_strategy']],
    },
    maxMicroversion: { type: microversion, help: 'The highest microversion that is offered to clients.' },
    host: { type: text, help: 'The address to listen on; 0.0.0.0 or :: for all.' },
    port: { type: integer(0, 65_535), help: 'The port to listen on; 0 for any free one.' },
    allowedHosts: {
      type: list,
      help: 'With noauth2, host names besides localhost that requests may have; * for any. On other addresses than loopback any, unless it is set.',
    },
    workers: { type: integer(1, 256), help: 'How many processes serve the port; more than one on PostgreSQL only.' },
    clientTimeout: {
      type: integer(1, 86_400),
      help: 'Seconds that a client may take to send a request, and to take its answer.',
    },
  },
  ssl: {
    certFile: { type: text, help: 'PEM file with the certificate chain; with key_file it turns TLS on.' },
    keyFile: { type: text, help: 'PEM file with the private key of the certificate.' },
  },
  placementDatabase: {
    connection: {
      type: mainDatabaseUrl,
      secret: true,
      help:
        'The PostgreSQL database, postgresql://user:password@host/database, or several hosts as libpq takes them; unset for the ' +
        'embedded one.',
    },
    slaveConnection: {
      type: databaseUrl,
      secret: true,
      help: 'Accepted for compatibility: a replica is not read from.',
    },
    embeddedPath: { type: text, help: 'The folder of the embedded database.' },
    maxPoolSize: { type: integer(0), help: 'How many connections to PostgreSQL are kept at most; 0 for no limit.' },
    connectionRecycleTime: { type: integer(-1), help: 'Seconds after which a connection is replaced; -1 for never.' },
    maxRetries: {
      type: integer(-1),
      help: 'How often the connection to the database is tried again at start; -1 for no limit.',
    },
    retryInterval: { type: integer(0), help: 'Seconds between these tries.' },
    poolTimeout: { type: integer(0), help: 'Seconds that a request waits for a free connection; 0 for no limit.' },
    preparedStatements: {
      type: boolean,
      help: 'Prepare each statement once per connection; false behind a pooler in transaction mode that cannot.',
    },
    statementTimeout: {
      type: integer(0, 86_400),
      help: 'Seconds that a statement of a request may take on PostgreSQL; 0 for no limit.',
    },
    slowStatementMs: {
      type: integer(-1),
      help: 'A statement that takes at least this many milliseconds is logged, without its values; -1 for never.',
    },
    compareEvery: {
      type: integer(0, 86_400),
      help: 'Seconds between two comparisons of what is in memory with PostgreSQL, which find writes that nothing has logged; 0 for never.',
    },
    syncOnStartup: { type: boolean, help: 'Migrate the database at start.' },
  },
  placement: {
    randomizeAllocationCandidates: { type: boolean, help: 'Give allocation candidates in random order.' },
    incompleteConsumerProjectId: { type: text, help: 'The project of consumers whose client named none (below 1.8).' },
    incompleteConsumerUserId: { type: text, help: 'The user of consumers whose client named none (below 1.8).' },
    allocationConflictRetryCount: {
      type: integer(0),
      help: 'How often a claim is tried again after another write has changed what it was judged by.',
    },
    maxAllocationCandidates: {
      type: integer(-1),
      help: 'How many candidates one query makes at most; -1 for no limit.',
    },
    allocationCandidatesGenerationStrategy: {
      type: choice('depth-first', 'breadth-first'),
      help: 'Whether all candidates of one root come before the next root, or one of each root in turn.',
    },
    maxTerm: {
      type: integer(1, 2_147_483_647),
      help: 'Seconds that a claim which ends by itself may last at most (expires_in); a year by default.',
    },
    keepFormerConsumers: {
      type: integer(60, 31_536_000),
      help: 'Seconds for which the generations of a removed consumer are not used again, at least; a day by default.',
    },
  },
  compute: {
    enabled: { type: boolean, help: 'Serve the registry of services and hypervisors under /compute.' },
    serviceDownTime: { type: integer(1), help: 'Seconds after its last heartbeat for which a service counts as up.' },
    retireAfter: {
      type: integer(0),
      help: 'Seconds after its last heartbeat at which a service is deleted; 0 for never.',
    },
    maxLimit: { type: integer(1), help: 'How many hypervisors one page has at most.' },
  },
  changes: {
    keep: {
      type: integer(60, 604_800),
      help: 'Seconds for which changes are kept at least: a client that was away for longer reads everything anew.',
    },
    lookEveryMs: {
      type: integer(10, 10_000),
      help: 'While clients follow GET /changes, the database is asked for changes every so many milliseconds.',
    },
    maxFollowers: {
      type: integer(0),
      help:
        'How many clients one process lets follow GET /changes at once, by streams or waiting requests. When all places are ' +
        'taken, users with fewer of them go before those with more.',
    },
  },
  console: {
    enabled: {
      type: boolean,
      help: 'Serve the console, pages for people, under /console; unset: where noauth2 serves a loopback address.',
    },
  },
  metrics: {
    enabled: { type: boolean, help: 'Serve figures for Prometheus under /metrics.' },
    requireToken: {
      type: boolean,
      help: 'Answer /metrics only for a token that the policy rule placement:metrics:show accepts.',
    },
    host: { type: text, help: 'The address to serve /metrics on, and not beside the API; unset for [api] host.' },
    port: {
      type: integer(0, 65_535),
      help: 'The port to serve /metrics on, and not beside the API; unset for [api] port.',
    },
    providerLimit: {
      type: integer(-1),
      help: 'For how many providers /metrics reports the capacity; -1 for all, 0 for none.',
    },
    shapes: {
      type: shapes,
      help: 'Queries of which /metrics tells how many fit: small: resources=VCPU:2,MEMORY_MB:4096; gpu: resources=VGPU:1',
    },
    shapesInterval: {
      type: integer(0),
      help: 'The shapes are counted once in this many seconds at most; set it to the scrape_interval of Prometheus.',
    },
  },
  workarounds: {
    optimizeForWideProviderTrees: { type: boolean, help: 'Accepted for compatibility: wide trees need no workaround.' },
  },
  osloPolicy: {
    policyFile: {
      type: text,
      beside: true,
      help: 'The YAML file with policy rules, relative to the configuration; it need not exist.',
      formerly: [['DEFAULT', 'policy_file']],
    },
    policyDirs: {
      type: texts,
      beside: true,
      help: 'Folders with further policy files; may be repeated.',
      formerly: [['DEFAULT', 'policy_dirs']],
    },
    policyDefaultRule: {
      type: text,
      help: 'The rule that decides if the requested rule is unknown.',
      formerly: [['DEFAULT', 'policy_default_rule']],
    },
    enforceScope: { type: boolean, help: 'Refuse tokens whose scope a rule does not name.' },
    enforceNewDefaults: { type: boolean, help: 'Do not let the deprecated default rules pass.' },
  },
  osloMiddleware: {
    enableProxyHeadersParsing: {
      type: boolean,
      help: 'Use the headers X-Forwarded-* and Forwarded that a proxy sets.',
    },
    maxRequestBodySize: {
      type: integer(0),
      help: 'The largest request body, in bytes.',
      formerly: [
        ['DEFAULT', 'osapi_max_request_body_size'],
        ['DEFAULT', 'max_request_body_size'],
      ],
    },
  },
  cors: {
    allowedOrigin: {
      type: list,
      help: 'Origins whose pages may call, <protocol>://<host>[:<port>] or *; none: no CORS.',
    },
    allowCredentials: { type: boolean, help: 'Whether such calls may carry credentials.' },
    exposeHeaders: { type: list, help: 'Response headers that a page may read.' },
    maxAge: { type: integer(0), help: 'Seconds that a browser keeps the answer to a preflight.' },
    allowMethods: { type: list, help: 'Methods that a page may use.' },
    allowHeaders: { type: list, help: 'Request headers that a page may send.' },
  },
  keystoneAuthtoken: {
    wwwAuthenticateUri: {
      type: text,
      help: 'The public URL of Keystone that a 401 names.',
      formerly: [['keystone_authtoken', 'auth_uri']],
    },
    authUrl: { type: text, plugin: true, help: 'The URL of Keystone that tokens are validated at.' },
    authType: {
      type: choice('password', 'v3password'),
      plugin: true,
      help: 'How the service authenticates with Keystone.',
      formerly: [['keystone_authtoken', 'auth_plugin']],
    },
    username: {
      type: text,
      plugin: true,
      help: 'The service user.',
      formerly: [['keystone_authtoken', 'user_name']],
    },
    userId: { type: text, plugin: true, help: 'The service user, by id.' },
    password: { type: text, plugin: true, secret: true, help: 'The password of the service user.' },
    projectName: {
      type: text,
      plugin: true,
      help: 'The project of the service user.',
      formerly: [['keystone_authtoken', 'tenant_name']],
    },
    projectId: {
      type: text,
      plugin: true,
      help: 'The project of the service user, by id.',
      formerly: [['keystone_authtoken', 'tenant_id']],
    },
    userDomainName: { type: text, plugin: true, help: 'The domain of the service user.' },
    userDomainId: { type: text, plugin: true, help: 'The domain of the service user, by id.' },
    projectDomainName: { type: text, plugin: true, help: 'The domain of the project.' },
    projectDomainId: { type: text, plugin: true, help: 'The domain of the project, by id.' },
    defaultDomainName: { type: text, plugin: true, help: 'The domain of user and project where they name none.' },
    defaultDomainId: { type: text, plugin: true, help: 'The domain of user and project where they name none, by id.' },
    systemScope: {
      type: text,
      plugin: true,
      help: 'all: the token of the service user is for the system, not a project.',
    },
    cafile: { type: text, help: 'PEM file with the authorities to verify Keystone by; unset for those of the system.' },
    certfile: { type: text, help: 'PEM file with a client certificate for Keystone.' },
    keyfile: { type: text, help: 'PEM file with the key of the client certificate.' },
    insecure: { type: boolean, help: "Do not verify Keystone's certificate." },
    regionName: { type: text, help: 'Accepted for compatibility: requests to Keystone go to auth_url.' },
    interface: { type: endpointInterface, help: 'Accepted for compatibility: requests to Keystone go to auth_url.' },
    serviceTokenRoles: { type: list, help: 'A service token counts with one of these roles.' },
    serviceTokenRolesRequired: { type: boolean, help: 'Refuse service tokens with none of these roles.' },
    serviceType: { type: text, help: 'The type of service that access rules of tokens must name.' },
    tokenCacheTime: {
      type: integer(-1),
      help: 'Seconds that a valid token is remembered, and an invalid one for 10 s of them at most; -1 for not at all.',
    },
    httpConnectTimeout: { type: integer(0), help: 'Seconds that Keystone may take to answer; unset for 10.' },
    httpRequestMaxRetries: { type: integer(0), help: 'How often a request that did not reach Keystone is repeated.' },
    includeServiceCatalog: { type: boolean, help: 'Ask Keystone for the catalog along with a token.' },
    delayAuthDecision: {
      type: boolean,
      help: 'Answer 401 instead of 503 if Keystone cannot be reached, and ignore service tokens that do not count.',
    },
  },
};
