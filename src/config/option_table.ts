import {
  boolean,
  choice,
  consumerTypes,
  databaseUrl,
  endpointInterface,
  fileMode,
  integer,
  list,
  listenAddress,
  mainDatabaseUrl,
  microversion,
  newestMicroversion,
  option,
  optional,
  shapes,
  text,
  texts,
} from './option_type.ts';

/** The longest time that a timer takes, in seconds: a longer one would be over at once. */
const longestSeconds = 2_147_483;
/** The longest time that the database counts, in seconds: 68 years. */
const longestCountedSeconds = 2_147_483_647;
const noConsumer = '00000000-0000-0000-0000-000000000000';

/**
 * Every option that the service reads, in the order of `--show-config`: its type, its default (`optional`: none), and its purpose. Groups
 * and options have upstream's names, in camelCase. The defaults are upstream's, and the embedded database on 127.0.0.1.
 */
export const optionTable = {
  default: {
    debug: option(boolean, false, 'Log at level debug.'),
    useJson: optional(
      boolean,
      "true: log lines in JSON; false: in oslo.log's form, with the formats below; unset: JSON, but not in a terminal.",
    ),
    /** Relative to `logDir`, if that is set. */
    logFile: optional(text, 'The file to log to, instead of standard error.', { formerly: [['DEFAULT', 'logfile']] }),
    logDir: optional(text, 'The folder of log_file; without log_file, of placement-api.log.', {
      formerly: [['DEFAULT', 'logdir']],
    }),
    loggingContextFormatString: option(
      text,
      '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [%(global_request_id)s %(request_id)s ' +
        '%(user_identity)s] %(instance)s%(message)s',
      'The form of a line about a request.',
    ),
    loggingDefaultFormatString: option(
      text,
      '%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s [-] %(instance)s%(message)s',
      'The form of any other line.',
    ),
    loggingUserIdentityFormat: option(
      text,
      '%(user)s %(project)s %(domain)s %(system_scope)s %(user_domain)s %(project_domain)s',
      'The text that replaces %(user_identity)s.',
    ),
  },
  api: {
    authStrategy: option(
      choice('keystone', 'tokens', 'noauth2'),
      'keystone',
      'Authentication by Keystone, by tokens of this service and of the issuers in [jwt:NAME], or none (noauth2: the token is the user; for tests and trusted networks).',
      { formerly: [['DEFAULT', 'auth_strategy']] },
    ),
    /** The default is the newest. Upstream's newest is 1.39, which turns version 2 off. */
    maxMicroversion: option(microversion, newestMicroversion, 'The highest microversion that is offered to clients.'),
    defaultVersion: option(
      microversion,
      '1.0',
      'The microversion of requests that name none; at most max_microversion. Clients of OpenStack expect 1.0.',
    ),
    host: option(
      listenAddress,
      '127.0.0.1',
      'The address to listen on; 0.0.0.0 or :: for all; unix:/run/placement/placement.sock for a UNIX socket, which has no port.',
    ),
    port: option(integer(0, 65_535), 8778, 'The port to listen on; 0 for any free one.'),
    socketMode: option(
      fileMode,
      '660',
      'The permissions of a UNIX socket that host names: which users of the machine may connect. It has user and group of the service.',
    ),
    allowedHosts: option(
      list,
      [],
      'With noauth2, host names besides localhost that requests may have; * for any. On other addresses than loopback any, unless it is set.',
    ),
    workers: option(integer(1, 256), 1, 'How many processes serve the port; more than one on PostgreSQL only.'),
    clientTimeout: option(
      integer(1, 86_400),
      60,
      'Seconds that a client may take to send a request, and to take its answer.',
    ),
  },
  ssl: {
    certFile: optional(text, 'PEM file with the certificate chain; with key_file it turns TLS on.'),
    keyFile: optional(text, 'PEM file with the private key of the certificate.'),
  },
  placementDatabase: {
    connection: optional(
      mainDatabaseUrl,
      'The PostgreSQL database, postgresql://user:password@host/database, or several hosts as libpq takes them; unset for the ' +
        'embedded one.',
      { secret: true },
    ),
    connectionParameters: optional(
      text,
      'Parameters that connection gets where its URL has none of their name: sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem.',
      { secret: true },
    ),
    slaveConnection: optional(databaseUrl, 'Accepted for compatibility: a replica is not read from.', { secret: true }),
    /** With `memory://` the data is lost when the process ends. */
    embeddedPath: option(
      text,
      './placement-data',
      'The folder of the embedded database. It is made if it does not exist; the folder that it is in must exist.',
    ),
    maxPoolSize: option(integer(0), 10, 'How many connections to PostgreSQL are kept at most; 0 for no limit.'),
    connectionRecycleTime: option(
      integer(-1, longestSeconds),
      3600,
      'Seconds after which a connection is replaced; -1 for never.',
    ),
    maxRetries: option(
      integer(-1),
      10,
      'How often the connection to the database is retried at start; -1 for no limit.',
    ),
    retryInterval: option(integer(0, longestSeconds), 10, 'Seconds between these retries.'),
    poolTimeout: option(
      integer(0, longestSeconds),
      30,
      'Seconds that a request waits for a free connection; 0 for no limit.',
    ),
    preparedStatements: option(
      boolean,
      true,
      'Prepare each statement once per connection; false behind a pooler in transaction mode that cannot.',
    ),
    statementTimeout: option(
      integer(0, 86_400),
      30,
      'Seconds that a statement of a request may take on PostgreSQL; 0 for no limit.',
    ),
    slowStatementMs: option(
      integer(-1),
      1000,
      'A statement that takes at least this many milliseconds is logged, without its values; -1 for never.',
    ),
    compareEvery: option(
      integer(0, 86_400),
      300,
      'Seconds between two comparisons of what is in memory with PostgreSQL, which find writes that nothing has logged; 0 for never.',
    ),
    syncOnStartup: option(boolean, false, 'Migrate the database at start.'),
  },
  placement: {
    randomizeAllocationCandidates: option(boolean, false, 'Give allocation candidates in random order.'),
    incompleteConsumerProjectId: option(
      text,
      noConsumer,
      'The project of consumers whose client named none (below 1.8).',
    ),
    incompleteConsumerUserId: option(text, noConsumer, 'The user of consumers whose client named none (below 1.8).'),
    allocationConflictRetryCount: option(
      integer(0),
      10,
      'How often a claim is judged again after another write has changed the data that it was judged by.',
    ),
    maxAllocationCandidates: option(integer(-1), -1, 'How many candidates one query makes at most; -1 for no limit.'),
    allocationCandidatesGenerationStrategy: option(
      choice('depth-first', 'breadth-first'),
      'depth-first',
      'Whether all candidates of one root come before the next root, or one of each root in turn.',
    ),
    maxTerm: option(
      integer(1, longestCountedSeconds),
      31_536_000,
      'Seconds that a claim may last at most, if it has a term (expires_in); a year by default.',
    ),
    uncountedTypes: option(
      consumerTypes,
      [],
      'Consumer types whose consumers do not count for limits: MIGRATION beside a Nova that sends types, since it holds an instance twice while it moves.',
    ),
    maxWait: option(integer(1, 86_400), 3600, 'Seconds for which a claim may wait at most (Prefer: wait).'),
    maxWaiting: option(
      integer(0),
      5000,
      'How many claims one process lets wait at the same time. When all places are taken, a user with fewer than a tenth of them gets the newest one ' +
        'of the user with the most.',
    ),
    keepFormerConsumers: option(
      integer(60, 31_536_000),
      86_400,
      'Seconds for which the generations of a removed consumer are not used again, at least; a day by default.',
    ),
  },
  compute: {
    enabled: option(boolean, false, 'Serve the registry of services and hypervisors under /compute.'),
    serviceDownTime: option(
      integer(1, longestCountedSeconds),
      60,
      'Seconds after its last heartbeat for which a service counts as up.',
    ),
    retireAfter: option(
      integer(0, longestCountedSeconds),
      0,
      'Seconds after its last heartbeat at which a service is deleted; 0 for never.',
    ),
    maxLimit: option(integer(1), 1000, 'How many hypervisors one page has at most.'),
  },
  changes: {
    keep: option(
      integer(60, 604_800),
      600,
      'Seconds for which changes are kept at least: a client that was disconnected for longer reads everything again.',
    ),
    /** Only if no request refreshes the fleet in this time. */
    lookEveryMs: option(
      integer(10, 10_000),
      100,
      'While clients follow GET /changes, the database is read for changes every so many milliseconds.',
    ),
    maxFollowers: option(
      integer(0),
      5000,
      'How many clients one process lets follow GET /changes at the same time, by streams or waiting requests. When all places are ' +
        'taken, users with fewer of them go before those with more.',
    ),
  },
  history: {
    enabled: option(
      boolean,
      false,
      'Keep a record of each time that a consumer held something: GET /usage_records, GET /usage_totals. It is switched on and off, for all processes, when one starts.',
    ),
    keep: option(
      integer(86_400, longestCountedSeconds),
      34_560_000,
      'Seconds for which a record is kept after its end; 400 days by default.',
    ),
  },
  console: {
    enabled: optional(
      boolean,
      'Serve the console, pages for people, under /console; unset: where noauth2 serves a loopback address.',
    ),
  },
  metrics: {
    enabled: option(boolean, true, 'Serve figures for Prometheus under /metrics.'),
    requireToken: option(
      boolean,
      false,
      'Answer /metrics only for a token that the policy rule placement:metrics:show accepts.',
    ),
    host: optional(listenAddress, 'The address to serve /metrics on, and not beside the API; unset for [api] host.'),
    port: optional(integer(0, 65_535), 'The port to serve /metrics on, and not beside the API; unset for [api] port.'),
    providerLimit: option(
      integer(-1),
      -1,
      'For how many providers /metrics reports the capacity; -1 for all, 0 for none.',
    ),
    shapes: option(
      shapes,
      '',
      'Queries for which /metrics has how many consumers fit: small: resources=VCPU:2,MEMORY_MB:4096; gpu: resources=VGPU:1',
    ),
    /** One process of a service counts them for all. */
    shapesInterval: option(
      integer(0),
      15,
      'The shapes are counted once in this many seconds at most; set it to the scrape_interval of Prometheus.',
    ),
  },
  workarounds: {
    optimizeForWideProviderTrees: option(boolean, false, 'Accepted for compatibility: wide trees need no workaround.'),
  },
  osloPolicy: {
    /** `load` makes the path absolute: it takes the first file beside the configuration that exists. None has to exist. */
    policyFile: option(
      text,
      'policy.yaml',
      'The YAML file with policy rules, relative to the configuration; it need not exist.',
      { beside: true, formerly: [['DEFAULT', 'policy_file']] },
    ),
    /** Absolute after `load`, like `policyFile`. */
    policyDirs: option(texts, ['policy.d'], 'Folders with further policy files; may be repeated.', {
      beside: true,
      formerly: [['DEFAULT', 'policy_dirs']],
    }),
    policyDefaultRule: option(text, 'default', 'The rule that decides if the requested rule is unknown.', {
      formerly: [['DEFAULT', 'policy_default_rule']],
    }),
    enforceScope: option(boolean, true, 'Refuse tokens whose scope a rule does not name.'),
    enforceNewDefaults: option(boolean, true, 'Do not let the deprecated default rules pass.'),
  },
  osloMiddleware: {
    enableProxyHeadersParsing: option(boolean, false, 'Use the headers X-Forwarded-* and Forwarded that a proxy sets.'),
    maxRequestBodySize: option(integer(0), 10 * 1024 * 1024, 'The largest request body, in bytes.', {
      formerly: [
        ['DEFAULT', 'osapi_max_request_body_size'],
        ['DEFAULT', 'max_request_body_size'],
      ],
    }),
  },
  cors: {
    allowedOrigin: option(list, [], 'Origins whose pages may call, <protocol>://<host>[:<port>] or *; none: no CORS.'),
    allowCredentials: option(boolean, true, 'Whether such calls may carry credentials.'),
    exposeHeaders: option(
      list,
      [
        'X-Auth-Token',
        'X-Openstack-Request-Id',
        'X-Subject-Token',
        'X-Service-Token',
        'OpenStack-API-Version',
        'ETag',
        'Placement-Changes-Token',
        'Placement-Dry-Run',
        'OpenStack-API-Minimum-Version',
        'OpenStack-API-Maximum-Version',
        'Preference-Applied',
        'Retry-After',
        'Location',
      ],
      'Response headers that a page may read.',
    ),
    maxAge: option(integer(0), 3600, 'Seconds that a browser keeps the answer to a preflight.'),
    allowMethods: option(list, ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'], 'Methods that a page may use.'),
    allowHeaders: option(
      list,
      [
        'X-Auth-Token',
        'X-Openstack-Request-Id',
        'X-Identity-Status',
        'X-Roles',
        'X-Service-Catalog',
        'X-User-Id',
        'X-Tenant-Id',
        'OpenStack-API-Version',
        'If-Match',
        'Prefer',
        'Last-Event-ID',
        'Authorization',
      ],
      'Request headers that a page may send.',
    ),
  },
  keystoneAuthtoken: {
    wwwAuthenticateUri: optional(text, 'The public URL of Keystone that a 401 names.', {
      formerly: [['keystone_authtoken', 'auth_uri']],
    }),
    authUrl: optional(text, 'The URL of Keystone that tokens are validated at.', { plugin: true }),
    authType: option(choice('password', 'v3password'), 'password', 'How the service authenticates with Keystone.', {
      plugin: true,
      formerly: [['keystone_authtoken', 'auth_plugin']],
    }),
    username: optional(text, 'The service user.', { plugin: true, formerly: [['keystone_authtoken', 'user_name']] }),
    userId: optional(text, 'The service user, by id.', { plugin: true }),
    password: optional(text, 'The password of the service user.', { plugin: true, secret: true }),
    projectName: optional(text, 'The project of the service user.', {
      plugin: true,
      formerly: [['keystone_authtoken', 'tenant_name']],
    }),
    projectId: optional(text, 'The project of the service user, by id.', {
      plugin: true,
      formerly: [['keystone_authtoken', 'tenant_id']],
    }),
    userDomainName: optional(text, 'The domain of the service user.', { plugin: true }),
    userDomainId: optional(text, 'The domain of the service user, by id.', { plugin: true }),
    projectDomainName: optional(text, 'The domain of the project.', { plugin: true }),
    projectDomainId: optional(text, 'The domain of the project, by id.', { plugin: true }),
    defaultDomainName: optional(text, 'The domain of user and project where they name none.', { plugin: true }),
    defaultDomainId: optional(text, 'The domain of user and project where they name none, by id.', { plugin: true }),
    systemScope: optional(text, 'all: the token of the service user is for the system, not a project.', {
      plugin: true,
    }),
    cafile: optional(text, 'PEM file with the authorities to verify Keystone by; unset for those of the system.'),
    certfile: optional(text, 'PEM file with a client certificate for Keystone.'),
    keyfile: optional(text, 'PEM file with the key of the client certificate.'),
    insecure: option(boolean, false, "Do not verify Keystone's certificate."),
    regionName: optional(text, 'Accepted for compatibility: requests to Keystone go to auth_url.'),
    interface: option(
      endpointInterface,
      'internal',
      'Accepted for compatibility: requests to Keystone go to auth_url.',
    ),
    serviceTokenRoles: option(list, ['service'], 'A service token counts with one of these roles.'),
    serviceTokenRolesRequired: option(boolean, true, 'Refuse service tokens with none of these roles.'),
    serviceType: optional(text, 'The type of service that access rules of tokens must name.'),
    tokenCacheTime: option(
      integer(-1),
      300,
      'Seconds that a valid token is remembered, and an invalid one for 10 s of them at most; -1 for not at all.',
    ),
    httpConnectTimeout: optional(integer(0, longestSeconds), 'Seconds that Keystone may take to answer; unset for 10.'),
    httpRequestMaxRetries: option(integer(0), 3, 'How often a request that did not reach Keystone is repeated.'),
    includeServiceCatalog: option(boolean, true, 'Ask Keystone for the catalog along with a token.'),
    delayAuthDecision: option(
      boolean,
      false,
      'Answer 401 instead of 503 if Keystone cannot be reached, and ignore service tokens that do not count.',
    ),
  },
};

/**
 * The options of a section `[jwt:NAME]`: an issuer of JSON Web Tokens that are taken with `auth_strategy = tokens`. A file may have
 * several of them. No variable of the environment sets them.
 */
export const jwtTable = {
  issuer: optional(text, 'The issuer, exactly as tokens have it in iss. Required.'),
  audience: option(list, [], 'Tokens count with one of these in aud. Required.'),
  jwksUri: optional(
    text,
    'The URL of the keys; without it and jwks_file that which the issuer publishes (OpenID Connect Discovery).',
  ),
  jwksFile: optional(text, 'A file with the keys, as a JSON Web Key Set; it is read at the start.'),
  cafile: optional(text, 'PEM file with the authorities to verify the issuer by; unset for those of the system.'),
  require: option(
    list,
    [],
    'Claims that tokens must have, as JSON pointers with values: /repository_owner=acme,/ref=refs/heads/main. Of several values for one claim any will do.',
  ),
  userClaim: option(text, 'sub', 'The claim that is the user: a name or a JSON pointer.'),
  projectClaim: optional(text, 'The claim that is the project: a name or a JSON pointer. Required.'),
  projects: option(list, ['*'], 'The projects that tokens may be for; * matches any text.'),
  roles: option(list, [], 'The roles that every token has.'),
  rolesClaim: optional(
    text,
    'The claim with further roles, a list or a text with spaces between: a name or a JSON pointer.',
  ),
  acceptRoles: option(list, ['member', 'reader'], 'The roles that roles_claim may give; others are left out.'),
};
