import type { Address, GroupId } from './api.js'

/** What a cancel speaks of. */
export type Cancel = {
  chainId: number
  /** The service's, as `/health` shows it. */
  deployment: string
  sender: Address
  groupId: GroupId
  /** Unix seconds until which the signature counts: at most 24 hours ahead. */
  expires: bigint
}

/** The typed data (EIP-712) that a group's owner signs to cancel it: `account.signTypedData(cancelMessage({ … }))`. */
export function cancelMessage({ chainId, ...message }: Cancel) {
  return {
    domain: { name: 'Watchtower', version: '1', chainId },
    types: {
      CancelGroup: [
        { name: 'deployment', type: 'string' },
        { name: 'sender', type: 'address' },
        { name: 'groupId', type: 'bytes16' },
        { name: 'expires', type: 'uint64' },
      ],
    },
    primaryType: 'CancelGroup',
    message,
  } as const
}
