package settings

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/watchtower/config"
	"github.com/tempo-watchtower/watchtower/commands/guard"
	"github.com/tempo-watchtower/watchtower/commands/relayer"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/fee"
	"github.com/tempo-watchtower/watchtower/domain/intent"
	"github.com/tempo-watchtower/watchtower/domain/signer"
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
			"The accounts that may sign. A key of any other account is refused at start: what nobody named must not be found out by what it signed. A replica need not have all of the keys."),
		paths("signers.keystore", &k.Keystore, "none",
			"A folder of encrypted keys: files of the Web3 Secret Storage Definition, version 3, and nothing else. Opening one of the usual strength takes about a second and 256 MiB."),
		paths("signers.passphrase-file", &k.PassphraseFile, "none",
			"The file with the passphrase that opens all files of `signers.keystore`."),
		lists("signers.p256-files", &k.P256,
			"Files with a key of P-256 each, for Tempo: one PEM block `PRIVATE KEY`, not encrypted."),
		config.ToggleRow("signers.environment", &k.Environment, false,
			"Whether keys stand in the environment, in `RELAYER_PRIVATE_KEYS_JSON` or `RELAYER_PRIVATE_KEY_0` and on: for development only, because others can read it."),
		remoteURL("signers.remote-url", &k.Remote.URL,
			"A remote signer that speaks the HTTP API of Web3Signer: an `https` URL, or `http` on this machine. All of its keys are taken that are among `signers.allowed`; one that is not keeps the relayer from starting."),
		config.ToggleRow("signers.remote-unencrypted", &k.Remote.Unencrypted, false,
			"Whether the remote signer may be reached by `http` on another machine, over a network that encrypts."),
		paths("signers.remote-authorities", &k.Remote.Authorities, "the system's",
			"A PEM file with those who may have signed the remote signer's certificate."),
		paths("signers.remote-certificate", &k.Remote.Certificate, "none",
			"A PEM file with the certificate that is shown to the remote signer."),
		paths("signers.remote-key", &k.Remote.Key, "none",
			"The PEM file with the key of `signers.remote-certificate`."),
		config.DurationRow("signers.remote-timeout", &k.Remote.Timeout, 5*time.Second, 10*time.Millisecond, 5*time.Minute,
			"How long one signature of the remote signer may take."),
		config.NumberRow("signers.remote-connections", &k.Remote.Connections, 16, 1, 1000,
			"How many connections to the remote signer are open at once."),
		payer("signers.fee-payer", &k.FeePayer,
			"Who pays for intents that want to be sponsored, on Tempo: an account with a key of secp256k1 here. Each replica that is to carry such intents out needs the key."),
		config.NumberRow("signers.failures", &k.Failures, guard.DefaultSettings().Failures, 1, signer.FailuresMax,
			"After how many failures in a row a signer is disabled until an operator lets it serve again; those within 5 s of each other are one. A wrong signature is enough."),
		poolsRow("pools", &d.Pools,
			"Groups of signers that share work: an intent that names a pool is carried out by the signer that has least in flight, of those that serve and that one replica works for; of several replicas, by the one that gets on best. In a pool's list each is among `signers.allowed`."),
	}
}

func (d *draft) lanes() []config.Row {
	const ms, sec, m = time.Millisecond, time.Second, time.Minute
	l := &d.Lane
	return []config.Row{
		formats("lane.formats", &d.Formats,
			"How transactions of a chain are written: `tempo`, `ethereum` (type 2, with base fees) or `legacy` (type 0)."),
		config.ChoiceRow("lane.leases", &l.Leases, string(ByStore),
			"Where the leases of lanes are: in the database of the due queue, or in the Redis of the setting `redis`, which spares the database a write a second for each lane. Losing one leads to no second transaction: the log lets one holder through.",
			[]string{string(ByStore), string(ByRedis)}, []Leases{ByStore, ByRedis}),
		config.NumberRow("lane.budget", &l.Budget, 100, 1, 5000,
			"How many nonces of a lane are in flight at most: handed out, and in no block yet. `scheduler.window` is as much, unless it is set to more."),
		config.NumberRow("lane.at-once", &l.AtOnce, 16, 1, 1000,
			"How many signatures of a lane, or appends to its intents, are under way at once."),
		config.DurationRow("lane.claim", &l.Claim, 10*sec, sec, 10*m,
			"An intent that a lane has taken from the queue, and not carried on, goes back after so long."),
		config.DurationRow("lane.poll", &l.Poll, sec, 10*ms, m,
			"How often a lane looks at the queue of intents, and at the chain's blocks, if nobody wakes it."),
		config.DurationRow("lane.look", &l.Look, m, sec, time.Hour,
			"How often the chain is asked which nonce it wants, in case somebody else uses the key."),
		config.DurationRow("lane.stall", &l.Stall, 30*sec, sec, 24*time.Hour,
			"When the first nonce that waits for the chain makes no progress for so long, it is signed for again at a higher fee."),
		config.NumberRow("lane.noop-gas", &d.noOpGas, int64(relayer.DefaultSettings().NoOpGas), fee.GasMin, 30_000_000, //nolint:gosec // small
			"The gas limit of the transaction that uses a nonce up which no intent wants."),
		config.NumberRow("lane.confirmations", &l.Confirmations, 1, 1, intent.ConfirmationsMax,
			"How many blocks are recorded of an intent that is in one, its own counting as the first."),
		config.NumberRow("lane.trusted", &l.Trusted, 0, 0, intent.ConfirmationsMax,
			"After how many of them the intent has come out, before its block is final; 0 waits for that."),
		config.DurationRow("lane.linger", &l.Linger, 10*m, sec, 24*time.Hour,
			"A lane of another nonce key than 0 is opened when an intent asks for it, carries out only intents that ask for its key, and is given up when none has for so long and all that has landed in it is final."),
		config.NumberRow("lane.extra", &l.Extra, 1000, 0, 10_000,
			"How many such lanes one replica holds at once on a chain, at most; further intents wait. A lane that no intent asks for is given up at once for another one that is asked for, if all that has landed in it is final."),
		config.NumberRow("lane.extra-share", &l.Share, 25, 1, 100,
			"How many percent of `lane.extra` are one client's at most, at least one lane. Its intents for further nonce keys wait until one of its lanes is free. Without API keys all lanes are everybody's."),
	}
}

func (d *draft) quotas() []config.Row {
	return []config.Row{
		config.NumberRow("quota.intents", &d.Quotas.Intents, 50_000, 1, 10_000_000,
			"How many intents of one client are open at most: accepted, and not come out. A further one is refused with `quota-exceeded`; the same request again is answered. It is counted in the database, for all replicas, once a second."),
		config.NumberRow("quota.webhooks", &d.Quotas.Webhooks, 100, 1, 100_000,
			"How many webhooks one client uses at most: URLs that it has asked for an intent with in the last hour, or for which something is queued. An intent with further ones is refused with `quota-exceeded`. It is counted in the database, for all replicas, once a second."),
	}
}
