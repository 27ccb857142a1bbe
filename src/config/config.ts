/**
 * Every option that the service reads, typed and validated. Groups and options have upstream's names, in camelCase;
 * `./default_config.ts` says what each is unless something else is written, `./option_specs.ts` what may be written,
 * `./load.ts` where values come from.
 */
export type Config = {
  readonly default: {
    /** Log at level debug. */
    readonly debug: boolean;
    /** JSON lines, or the lines of oslo.log; the formats below are of the latter. */
    readonly useJson: boolean;
    /** Relative to `logDir`, where that is set; without both the log goes to standard error. */
    readonly logFile: string | undefined;
    readonly logDir: string | undefined;
    readonly loggingContextFormatString: string;
    readonly loggingDefaultFormatString: string;
    readonly loggingUserIdentityFormat: string;
  };
  readonly api: {
    readonly authStrategy: 'keystone' | 'noauth2';
    /** The highest microversion that is offered, `1.0` to `1.40`; upstream ends at 1.39. */
    readonly maxMicroversion: string;
    readonly host: string;
    /** 0 is any free port. */
    readonly port: number;
    /** How many processes serve the port. */
    readonly workers: number;
    /** Seconds that a client may take to send a request, and to take its answer. */
    readonly clientTimeout: number;
  };
  readonly ssl: {
    /** PEM file with the certificate chain. TLS is on where this and `keyFile` are set. */
    readonly certFile: string | undefined;
    readonly keyFile: string | undefined;
  };
  readonly placementDatabase: {
    /** `postgresql://...`; undefined for the embedded database. */
    readonly connection: string | undefined;
    /** A read-only replica, `postgresql://...`: accepted and not used. */
    readonly slaveConnection: string | undefined;
    /** The folder of the embedded database; `memory://` keeps nothing. */
    readonly embeddedPath: string;
    readonly maxPoolSize: number;
    /** Age in seconds at which a connection is replaced; -1 is never. */
    readonly connectionRecycleTime: number;
    /** Attempts to reach the database at start; -1 is without end. */
    readonly maxRetries: number;
    /** Seconds between these attempts. */
    readonly retryInterval: number;
    /** Seconds that a request waits for a free connection. */
    readonly poolTimeout: number;
    /** Seconds that a statement may take; 0 is without end. */
    readonly statementTimeout: number;
    /** Milliseconds from which on a statement is logged; -1 is never. */
    readonly slowStatementMs: number;
    /** Run the migrations at start. */
    readonly syncOnStartup: boolean;
  };
  readonly placement: {
    readonly randomizeAllocationCandidates: boolean;
    readonly incompleteConsumerProjectId: string;
    readonly incompleteConsumerUserId: string;
    readonly allocationConflictRetryCount: number;
    /** -1 is no limit. */
    readonly maxAllocationCandidates: number;
    readonly allocationCandidatesGenerationStrategy: 'depth-first' | 'breadth-first';
  };
  readonly compute: {
    /** Serve services and hypervisors under `/compute`. */
    readonly enabled: boolean;
    /** Seconds for which a service is up after it was heard of. */
    readonly serviceDownTime: number;
    /** Seconds after which a service that is not heard of is deleted; 0 is never. */
    readonly retireAfter: number;
    /** How many hypervisors one page has at most. */
    readonly maxLimit: number;
  };
  readonly metrics: {
    /** Serve figures for Prometheus under `/metrics`, to everybody. */
    readonly enabled: boolean;
    /** Of how many providers the capacity is told there; -1 is all, 0 none. */
    readonly providerLimit: number;
  };
  readonly workarounds: {
    readonly optimizeForWideProviderTrees: boolean;
  };
  readonly osloPolicy: {
    /** `load` makes it absolute: the first that exists beside the configuration; it need not exist. */
    readonly policyFile: string;
    /** Absolute after `load`, like `policyFile`. */
    readonly policyDirs: readonly string[];
    /** The rule that decides where the asked one is unknown. */
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
    /** No CORS where this is empty. */
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
    /** The domain of user and project where they name none. */
    readonly defaultDomainName: string | undefined;
    readonly defaultDomainId: string | undefined;
    /** `all`, where the service's own token is scoped to the system rather than a project. */
    readonly systemScope: string | undefined;
    /** PEM file with the authorities that sign Keystone's certificate; undefined for the system's. */
    readonly cafile: string | undefined;
    /** PEM files of the client certificate that Keystone may want. */
    readonly certfile: string | undefined;
    readonly keyfile: string | undefined;
    /** Do not verify Keystone's certificate. */
    readonly insecure: boolean;
    /** Accepted and not used, as `interface`: Keystone is asked at `authUrl`. */
    readonly regionName: string | undefined;
    readonly interface: 'public' | 'internal' | 'admin';
    readonly serviceTokenRoles: readonly string[];
    readonly serviceTokenRolesRequired: boolean;
    /** Refuse tokens whose access rules do not name this type of service. */
    readonly serviceType: string | undefined;
    /** Seconds; -1 is no cache. */
    readonly tokenCacheTime: number;
    /** Seconds; undefined for 10. */
    readonly httpConnectTimeout: number | undefined;
    readonly httpRequestMaxRetries: number;
    readonly includeServiceCatalog: boolean;
    readonly delayAuthDecision: boolean;
  };
};
