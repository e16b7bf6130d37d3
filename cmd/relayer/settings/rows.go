package settings

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// draft is settings being built.
type draft struct {
	Settings
	ceiling, tipCeiling, minFee, minTip, bump, gasMargin, gasCeiling, perTransaction, noOpGas int64
}

// rows declares every setting that the relay adds, bound to d. A chain may have its own value of
// some.
func (d *draft) rows() []config.Row {
	all, judges := d.declared(), new(draft).declared()
	for i, row := range all {
		if differs(row.Path()) {
			all[i] = row.PerChain(judges[i])
		}
	}
	return all
}

func (d *draft) declared() []config.Row {
	return slices.Concat(d.front(), d.signers(), d.lanes(), d.fees(), d.webhooks(), d.quotas())
}

// finish converts numbers to their types. All of them are positive.
func (d *draft) finish() Settings {
	price := func(n int64) chain.Price { return chain.PriceOf(uint64(n)) } //nolint:gosec // see above
	f := &d.Fee
	f.Ceiling, f.TipCeiling, f.MinFee, f.MinTip = price(d.ceiling), price(d.tipCeiling), price(d.minFee), price(d.minTip)
	f.Bump, f.GasMargin, f.GasCeiling = uint64(d.bump), uint64(d.gasMargin), uint64(d.gasCeiling) //nolint:gosec // see above
	f.MaxPerTransaction = chain.NewAmount(uint64(d.perTransaction))                               //nolint:gosec // see above
	d.Lane.NoOpGas = uint64(d.noOpGas)                                                            //nolint:gosec // see above
	return d.Settings
}

func (d *draft) signers() []config.Row {
	k := &d.Signers
	return []config.Row{
		addresses("signers.allowed", &k.Allowed,
			"The accounts that may sign. A key of any other account is refused at the start, because a key that nobody listed must not be discovered by its signatures. A replica need not have all of the keys."),
		paths("signers.keystore", &k.Keystore, "none",
			"A folder of encrypted keys: files of the Web3 Secret Storage Definition, version 3, and no other files. Opening a file of the usual strength takes about a second and 256 MiB."),
		paths("signers.passphrase-file", &k.PassphraseFile, "none",
			"The file with the passphrase that opens all files of `signers.keystore`."),
		lists("signers.p256-files", &k.P256,
			"Files with one P-256 key each, for Tempo: one PEM block `PRIVATE KEY`, not encrypted."),
		config.ToggleRow("signers.environment", &k.Environment, false,
			"Whether keys are read from the environment, from `RELAYER_PRIVATE_KEYS_JSON` or `RELAYER_PRIVATE_KEY_0` and on: for development only, because others can read the environment."),
		remoteURL("signers.remote-url", &k.Remote.URL,
			"A remote signer with the HTTP API of Web3Signer: an `https` URL, or `http` on this machine. The relayer uses all of its keys, and does not start if one of them is not in `signers.allowed`."),
		config.ToggleRow("signers.remote-unencrypted", &k.Remote.Unencrypted, false,
			"Whether the remote signer may be reached by `http` on another machine, over a network that encrypts."),
		paths("signers.remote-authorities", &k.Remote.Authorities, "the system's",
			"A PEM file with the certificate authorities that may have signed the remote signer's certificate."),
		paths("signers.remote-certificate", &k.Remote.Certificate, "none",
			"A PEM file with the client certificate for the remote signer."),
		paths("signers.remote-key", &k.Remote.Key, "none",
			"The PEM file with the key of `signers.remote-certificate`."),
		config.DurationRow("signers.remote-timeout", &k.Remote.Timeout, 5*time.Second, 10*time.Millisecond, 5*time.Minute,
			"How long one signature of the remote signer may take."),
		config.NumberRow("signers.remote-connections", &k.Remote.Connections, 16, 1, 1000,
			"How many connections to the remote signer are open at once."),
		payer("signers.fee-payer", &k.FeePayer,
			"The account that pays for sponsored intents, on Tempo: an account with a secp256k1 key here. Each replica that carries out sponsored intents needs the key."),
		config.NumberRow("signers.failures", &k.Failures, guard.DefaultSettings().Failures, 1, signer.FailuresMax,
			"The number of consecutive failures that disables a signer until an operator resumes it; failures within 5 s of each other count once. One wrong signature disables it at once."),
		poolsRow("pools", &d.Pools,
			"Groups of signers that share work. An intent for a pool is carried out by the serving signer with the fewest nonces in flight, among the signers that one replica works for; between replicas, the fastest takes most. Every signer of a pool must be in `signers.allowed`."),
	}
}

func (d *draft) lanes() []config.Row {
	const ms, sec, m = time.Millisecond, time.Second, time.Minute
	l := &d.Lane
	return []config.Row{
		formats("lane.formats", &d.Formats,
			"The transaction format of each chain: `tempo`, `ethereum` (type 2, with base fees) or `legacy` (type 0)."),
		config.ChoiceRow("lane.leases", &l.Leases, string(ByStore),
			"The place of the leases of lanes: the database of the due queue, or the Redis of the setting `redis`, which saves the database one write per second for each lane. A lost lease never leads to a second transaction: the log accepts one holder only.",
			[]string{string(ByStore), string(ByRedis)}, []Leases{ByStore, ByRedis}),
		config.NumberRow("lane.budget", &l.Budget, 100, 1, 5000,
			"How many nonces of a lane are in flight at most: assigned, and not yet in a block. `scheduler.window` is at least this value by default; a lower value of it is refused."),
		config.NumberRow("lane.at-once", &l.AtOnce, 16, 1, 1000,
			"How many signatures of a lane, or appends to its intents, run at once."),
		config.DurationRow("lane.claim", &l.Claim, 10*sec, sec, 10*m,
			"An intent that a lane has claimed from the queue, and not continued, goes back to the queue after this time."),
		config.DurationRow("lane.poll", &l.Poll, sec, 10*ms, m,
			"How often a lane reads the queue of intents, and the chain's blocks, if nothing wakes it."),
		config.DurationRow("lane.look", &l.Look, m, sec, time.Hour,
			"How often the chain is queried for the next nonce of the signer, in case somebody else uses the key. A lane with a nonce key other than 0 asks when an intent could be signed or has a nonce, in the names of its clients."),
		config.DurationRow("lane.stall", &l.Stall, 30*sec, sec, 24*time.Hour,
			"If the first nonce that waits for the chain makes no progress for this long, it is signed again at a higher fee."),
		config.NumberRow("lane.noop-gas", &d.noOpGas, int64(worker.DefaultSettings().NoOpGas), fee.GasMin, 30_000_000, //nolint:gosec // small
			"The gas limit of a no-op, the transaction that uses up a nonce that no intent needs."),
		config.NumberRow("lane.confirmations", &l.Confirmations, 1, 1, intent.ConfirmationsMax,
			"How many blocks are recorded for a mined intent; its own block counts as the first."),
		config.NumberRow("lane.trusted", &l.Trusted, 0, 0, intent.ConfirmationsMax,
			"After how many of these blocks an intent is completed, before its block is final; 0 waits until the block is final."),
		config.DurationRow("lane.linger", &l.Linger, 10*m, sec, 24*time.Hour,
			"A lane with a nonce key other than 0 opens when an intent asks for it, and carries out only intents that ask for its key. It is given up when no intent has asked for it for this long, and all its mined transactions are final."),
		config.NumberRow("lane.extra", &l.Extra, 1000, 0, 10_000,
			"How many lanes with a nonce key other than 0 one replica holds at once on a chain, at most; further intents wait. A lane that no intent asks for is given up at once for a requested lane, if all its mined transactions are final."),
		config.NumberRow("lane.extra-share", &l.Share, 25, 1, 100,
			"The largest percentage of `lane.extra` for one client, but at least one lane. The client's intents for further nonce keys wait until one of its lanes is free. At most 16 of its lanes are opened in each `lane.poll`. Without API keys these limits do not apply."),
	}
}

func (d *draft) quotas() []config.Row {
	return []config.Row{
		config.NumberRow("quota.intents", &d.Quotas.Intents, 50_000, 1, 10_000_000,
			"How many intents of one client are open at most: accepted, and not yet ended. A further intent is refused with `quota-exceeded`; a repeated request is answered. Intents are counted in the database, for all replicas, once a second."),
		config.NumberRow("quota.webhooks", &d.Quotas.Webhooks, 100, 1, 100_000,
			"How many webhooks one client uses at most: URLs that its intents named in the last hour, or that have queued deliveries. An intent with further webhooks is refused with `quota-exceeded`. Webhooks are counted in the database, for all replicas, once a second."),
		config.NumberRow("quota.deliveries", &d.Quotas.Deliveries, 250_000, 8, 10_000_000,
			"How many webhook deliveries of one client are queued at most. An intent with webhooks that would exceed it is refused with `quota-exceeded`, and counts its webhooks; an intent without webhooks is accepted. Deliveries for accepted intents are queued in any case. Those to a disabled webhook are dead and do not count. Deliveries are counted in the database, for all replicas, once a second."),
	}
}
