/** Exit codes by which supervisors and scripts tell failures apart; numbers and names are of sysexits.h. */
export const sysexits = { dataError: 65, unavailable: 69, osError: 71, noPermission: 77, config: 78 } as const;
