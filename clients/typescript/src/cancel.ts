import type { Address, GroupId } from './contract/delivery.js'

/** The group to cancel, and how long the signature is valid. */
export type Cancel = {
  chainId: number
  /** The service's name, as in `/health`. */
  deployment: string
  sender: Address
  groupId: GroupId
  /** Unix seconds until which the signature is valid: at most 24 hours ahead. */
  expires: bigint
}

/**
 * The group owner's authorization of a cancel: a signature over the typed data of
 * `cancelMessage`, with its expiry; or a signature over keccak256 of the group's id,
 * without expiry.
 */
export type CancelProof = { signature: `0x${string}`; expires?: bigint | number | undefined }

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
