/**
 * Every option that the service reads, typed and validated. Groups and options have upstream's names, in camelCase.
 * `./default_config.ts` has the default values, `./option_specs.ts` the values that are allowed, and `./load.ts` reads
 * the values from their sources.
 */
export type Config = {
  readonly default: {
    /** Log at level debug. */
    readonly debug: boolean;
    /**
     * true: log lines in JSON. false: log lines as oslo.log writes them, in the formats below. Undefined: lines for people if the log
     * goes to a terminal, otherwise JSON.
     */
    readonly useJson: boolean | undefined;
    /** Relative to `logDir` if that is set. If neither is set, the log goes to standard error. */
    readonly logFile: string | undefined;
    readonly logDir: string | undefined;
    readonly loggingContextFormatString: string;
    readonly loggingDefaultFormatString: string;
    readonly loggingUserIdentityFormat: string;
  };
  readonly api: {
    readonly authStrategy: 'keystone' | 'noauth2';
    /** The highest microversion that is offered. The default is the newest. Upstream's newest is 1.39. */
    readonly maxMicroversion: string;
    readonly host: string;
    /** 0 means any free port. */
    readonly port: number;
    /** Host names that a request may carry, besides loopback. They count only with noauth2 on a loopback address. */
    readonly allowedHosts: readonly string[];
    /** How many processes serve the port. */
    readonly workers: number;
    /** Seconds that a client may take to send a request, and to take its answer. */
    readonly clientTimeout: number;
  };
  readonly ssl: {
    /** PEM file with the certificate chain. TLS is on if this and `keyFile` are set. */
    readonly certFile: string | undefined;
    readonly keyFile: string | undefined;
  };
  readonly placementDatabase: {
    /** `postgresql://...`; undefined for the embedded database. */
    readonly connection: string | undefined;
    /** A read-only replica, `postgresql://...`: accepted and not used. */
    readonly slaveConnection: string | undefined;
    /** The folder of the embedded database. With `memory://` the data is lost when the process ends. */
    readonly embeddedPath: string;
    readonly maxPoolSize: number;
    /** Age in seconds at which a connection is replaced. -1 means never. */
    readonly connectionRecycleTime: number;
    /** How many attempts to reach the database are made at start. -1 means no limit. */
    readonly maxRetries: number;
    /** Seconds between these attempts. */
    readonly retryInterval: number;
    /** Seconds that a request waits for a free connection. */
    readonly poolTimeout: number;
    /** Prepare each statement once per connection. Some poolers in transaction mode cannot carry that. */
    readonly preparedStatements: boolean;
    /** Seconds that a statement may take. 0 means no limit. */
    readonly statementTimeout: number;
    /** A statement that takes at least this many milliseconds is logged. -1 means never. */
    readonly slowStatementMs: number;
    /** Seconds between two comparisons of the fleet with PostgreSQL. 0 means never. */
    readonly compareEvery: number;
    /** Run the migrations at start. */
    readonly syncOnStartup: boolean;
  };
  readonly placement: {
    readonly randomizeAllocationCandidates: boolean;
    readonly incompleteConsumerProjectId: string;
    readonly incompleteConsumerUserId: string;
    readonly allocationConflictRetryCount: number;
    /** -1 means no limit. */
    readonly maxAllocationCandidates: number;
    readonly allocationCandidatesGenerationStrategy: 'depth-first' | 'breadth-first';
    /** The largest number of seconds of a term. */
    readonly maxTerm: number;
    /** Seconds for which a removed consumer is remembered, at least. */
    readonly keepFormerConsumers: number;
  };
  readonly compute: {
    /** Serve services and hypervisors under `/compute`. */
    readonly enabled: boolean;
    /** A service counts as up for this many seconds after its last heartbeat. */
    readonly serviceDownTime: number;
    /** A service is deleted this many seconds after its last heartbeat. 0 means never. */
    readonly retireAfter: number;
    /** The largest number of hypervisors on one page. */
    readonly maxLimit: number;
  };
  readonly changes: {
    /** Seconds for which the log has each change, at least. */
    readonly keep: number;
    /** The fleet is refreshed after this many milliseconds for clients that follow changes, if no request does so. */
    readonly lookEveryMs: number;
    /** How many clients may follow at once in one process, by streams or waiting requests. */
    readonly maxFollowers: number;
  };
  readonly console: {
    /** Serve the console under `/console`. Undefined: only where noauth2 serves a loopback address. */
    readonly enabled: boolean | undefined;
  };
  readonly metrics: {
    /** Serve figures for Prometheus under `/metrics`. */
    readonly enabled: boolean;
    /** Serve `/metrics` only for tokens that the rule `placement:metrics:show` accepts. */
    readonly requireToken: boolean;
    /** A separate address for `/metrics`. If one of these is undefined, the value of `[api]` counts. */
    readonly host: string | undefined;
    readonly port: number | undefined;
    /** The figures include the capacity of this many providers. -1 means all, 0 none. */
    readonly providerLimit: number;
    /** Queries with names, of which is told how many fit: see parseShapes. */
    readonly shapes: string;
    /** In seconds: the shapes are counted at most once in this time, by one process of a service. */
    readonly shapesInterval: number;
  };
  readonly workarounds: {
    readonly optimizeForWideProviderTrees: boolean;
  };
  readonly osloPolicy: {
    /**
     * `load` makes the path absolute: it takes the first file beside the configuration that exists. None has to exist.
     */
    readonly policyFile: string;
    /** Absolute after `load`, like `policyFile`. */
    readonly policyDirs: readonly string[];
    /** The rule that decides if the requested rule is unknown. */
    readonly policyDefaultRule: string;
    readonly enforceScope: boolean;
    readonly enforceNewDefaults: boolean;
  };
  readonly osloMiddleware: {
    readonly enableProxyHeadersParsing: boolean;
    /** Bytes. */
    readonly maxRequestBodySize: number;
  };
  readonly cors: {
    /** If this is empty there is no CORS. */
    readonly allowedOrigin: readonly string[];
    readonly allowCredentials: boolean;
    readonly exposeHeaders: readonly string[];
    /** Seconds. */
    readonly maxAge: number;
    readonly allowMethods: readonly string[];
    readonly allowHeaders: readonly string[];
  };
  readonly keystoneAuthtoken: {
    readonly wwwAuthenticateUri: string | undefined;
    readonly authUrl: string | undefined;
    readonly authType: 'password' | 'v3password';
    readonly username: string | undefined;
    readonly userId: string | undefined;
    readonly password: string | undefined;
    readonly projectName: string | undefined;
    readonly projectId: string | undefined;
    readonly userDomainName: string | undefined;
    readonly userDomainId: string | undefined;
    readonly projectDomainName: string | undefined;
    readonly projectDomainId: string | undefined;
    /** The domain of a user or project that names no domain. */
    readonly defaultDomainName: string | undefined;
    readonly defaultDomainId: string | undefined;
    /** `all` if the service's own token is scoped to the system instead of a project. */
    readonly systemScope: string | undefined;
    /** PEM file with the authorities that sign Keystone's certificate. Undefined: the authorities of the system. */
    readonly cafile: string | undefined;
    /** PEM files of the client certificate, for a Keystone that requires one. */
    readonly certfile: string | undefined;
    readonly keyfile: string | undefined;
    /** Do not verify Keystone's certificate. */
    readonly insecure: boolean;
    /** Accepted and not used, like `interface`: requests to Keystone go to `authUrl`. */
    readonly regionName: string | undefined;
    readonly interface: 'public' | 'internal' | 'admin';
    readonly serviceTokenRoles: readonly string[];
    readonly serviceTokenRolesRequired: boolean;
    /** A token with access rules is refused if none of the rules names this type of service. */
    readonly serviceType: string | undefined;
    /** Seconds. -1 means no cache. */
    readonly tokenCacheTime: number;
    /** Seconds. Undefined means 10. */
    readonly httpConnectTimeout: number | undefined;
    readonly httpRequestMaxRetries: number;
    readonly includeServiceCatalog: boolean;
    readonly delayAuthDecision: boolean;
  };
};
