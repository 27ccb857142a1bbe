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
  text,
  texts,
} from './option_type.ts';

/** What may be written for an option, and how it is read. */
export type OptionSpec<T> = {
  readonly type: OptionType<T>;
  /** What it is for, a sentence for operators. */
  readonly help: string;
  /** The value is never shown; of a database URL all but the password is. */
  readonly secret?: true;
  /** Older names, `[section, option]`, that are read where the option itself is not in the same file. */
  readonly formerly?: readonly (readonly [section: string, name: string])[];
  /** Of Keystone's authentication plugin: read from the section that `[keystone_authtoken] auth_section` names. */
  readonly plugin?: true;
  /** Relative to the directories of the configuration. */
  readonly beside?: true;
};

/** Every option of `Config`, in the order of `--show-config`. */
export const optionSpecs: {
  readonly [G in keyof Config]: { readonly [O in keyof Config[G]]: OptionSpec<NonNullable<Config[G][O]>> };
} = {
  default: {
    debug: { type: boolean, help: 'Log at level debug.' },
    useJson: { type: boolean, help: "Log lines of JSON; false for oslo.log's form, which the formats below say." },
    logFile: { type: text, help: 'The file to log to, instead of standard error.', formerly: [['DEFAULT', 'logfile']] },
    logDir: {
      type: text,
      help: 'The folder of log_file; without log_file, of placement-api.log.',
      formerly: [['DEFAULT', 'logdir']],
    },
    loggingContextFormatString: { type: text, help: 'The form of a line about a request.' },
    loggingDefaultFormatString: { type: text, help: 'The form of any other line.' },
    loggingUserIdentityFormat: { type: text, help: 'What %(user_identity)s stands for.' },
  },
  api: {
    authStrategy: {
      type: choice('keystone', 'noauth2'),
      help: 'Who authenticates: Keystone, or nobody (noauth2: the token is the user; for tests and trusted networks).',
      formerly: [['DEFAULT', 'auth_strategy']],
    },
    maxMicroversion: { type: microversion, help: 'The highest microversion that is offered to clients.' },
    host: { type: text, help: 'The address to listen on; 0.0.0.0 or :: for all.' },
    port: { type: integer(0, 65_535), help: 'The port to listen on; 0 for any free one.' },
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
      help: 'The PostgreSQL database, postgresql://user:password@host/database; unset for the embedded one.',
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
      help: 'How often reaching the database is tried again at start; -1 for without end.',
    },
    retryInterval: { type: integer(0), help: 'Seconds between these tries.' },
    poolTimeout: { type: integer(0), help: 'Seconds that a request waits for a free connection; 0 for no limit.' },
    statementTimeout: {
      type: integer(0, 86_400),
      help: 'Seconds that a statement of a request may take on PostgreSQL; 0 for no limit.',
    },
    slowStatementMs: {
      type: integer(-1),
      help: 'Milliseconds from which on a statement is logged, without its values; -1 for never.',
    },
    syncOnStartup: { type: boolean, help: 'Migrate the database at start.' },
  },
  placement: {
    randomizeAllocationCandidates: { type: boolean, help: 'Give allocation candidates in random order.' },
    incompleteConsumerProjectId: { type: text, help: 'The project of consumers whose client named none (below 1.8).' },
    incompleteConsumerUserId: { type: text, help: 'The user of consumers whose client named none (below 1.8).' },
    allocationConflictRetryCount: {
      type: integer(0),
      help: 'How often a claim is tried again where another one changed the provider meanwhile.',
    },
    maxAllocationCandidates: {
      type: integer(-1),
      help: 'How many candidates one query makes at most; -1 for no limit.',
    },
    allocationCandidatesGenerationStrategy: {
      type: choice('depth-first', 'breadth-first'),
      help: 'Whether all candidates of one root come before the next root, or one of each root in turn.',
    },
  },
  compute: {
    enabled: { type: boolean, help: 'Serve the registry of services and hypervisors under /compute.' },
    serviceDownTime: { type: integer(1), help: 'Seconds for which a service is up after it was heard of.' },
    retireAfter: {
      type: integer(0),
      help: 'Seconds after which a service that is not heard of is deleted; 0 for never.',
    },
    maxLimit: { type: integer(1), help: 'How many hypervisors one page has at most.' },
  },
  metrics: {
    enabled: { type: boolean, help: 'Serve figures for Prometheus under /metrics, to everybody who reaches the port.' },
    providerLimit: {
      type: integer(-1),
      help: 'Of how many providers the capacity is told there, by name; -1 for all, 0 for none.',
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
      help: 'The rule that decides where the asked one is unknown.',
      formerly: [['DEFAULT', 'policy_default_rule']],
    },
    enforceScope: { type: boolean, help: 'Refuse tokens whose scope a rule does not name.' },
    enforceNewDefaults: { type: boolean, help: 'Do not let the deprecated default rules pass.' },
  },
  osloMiddleware: {
    enableProxyHeadersParsing: {
      type: boolean,
      help: 'Believe X-Forwarded-* and Forwarded, as set by a proxy in front.',
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
    regionName: { type: text, help: 'Accepted for compatibility: Keystone is asked at auth_url.' },
    interface: { type: endpointInterface, help: 'Accepted for compatibility: Keystone is asked at auth_url.' },
    serviceTokenRoles: { type: list, help: 'A service token counts with one of these roles.' },
    serviceTokenRolesRequired: { type: boolean, help: 'Refuse service tokens with none of these roles.' },
    serviceType: { type: text, help: 'The type of service that access rules of tokens must name.' },
    tokenCacheTime: { type: integer(-1), help: 'Seconds that a valid token is remembered; -1 for not at all.' },
    httpConnectTimeout: { type: integer(0), help: 'Seconds that Keystone may take to answer; unset for 10.' },
    httpRequestMaxRetries: { type: integer(0), help: 'How often a request that did not reach Keystone is repeated.' },
    includeServiceCatalog: { type: boolean, help: 'Ask Keystone for the catalog along with a token.' },
    delayAuthDecision: {
      type: boolean,
      help: 'Answer 401, and not 503, where Keystone cannot be asked, and ignore service tokens that do not count.',
    },
  },
};
