package settings

import (
	"slices"
	"time"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
)

// Front configures the API of intents.
type Front struct {
	Listen string
	// Address is the rate of requests without a valid key.
	Address config.Rate
	// MessageData is the most bytes of inputs of an intent's calls in an event for clients.
	MessageData int
	// Wait is how long a wallet's call waits for the first hash of its transaction, and Repeat how long
	// the same call repeats that transaction.
	Wait, Repeat time.Duration
}

func (d *draft) front() []config.Row {
	return []config.Row{
		config.AddressRow("relay.listen", &d.Front.Listen, "127.0.0.1:8422",
			"The address on which the API of intents listens: another address than `listen` and `metrics-listen`. "+
				"An address other than loopback requires API keys (`relayer keys create`) or `open-access`. "+
				"The limits, rates, origins, hosts and proxies of the watchtower's API apply here too. "+
				"But requests without a valid API key have a rate limit as soon as this address is not loopback."),
		config.NumberRow("messages.data-bytes", &d.Front.MessageData, intent.MessageDataStandard, 0, intent.MessageDataMost,
			"How many bytes of input an intent's calls may have together, so that webhooks, the event stream and brokers carry it in full. "+
				"Of a longer input they carry the Keccak-256 and the length."),
		config.DurationRow("rpc.wait", &d.Front.Wait, 20*time.Second, 100*time.Millisecond, time.Minute,
			"How long `eth_sendTransaction` on the relay's listener waits for the transaction's first hash. After that its answer is an error with the intent's id, and the intent stays."),
		config.DurationRow("rpc.repeat-window", &d.Front.Repeat, time.Minute, time.Second, 24*time.Hour,
			"How long after its first hash a transaction of `eth_sendTransaction` or `wallet_sendCalls` without an idempotency key is remembered: until then the same client's same call is that transaction. Before the first hash it is in any case."),
	}
}

// derive sets the values that follow from delivery's settings.
func (f *Front) derive(delivery config.Config, shown []config.Setting) {
	f.Address = delivery.Rates.Address
	if originOf("rate.address", shown) == "default" && !config.IsLoopback(f.Listen) {
		f.Address.PerSecond = config.AddressRate
	}
}

// originOf returns the origin of a setting's value.
func originOf(path string, shown []config.Setting) string {
	return shown[slices.IndexFunc(shown, func(one config.Setting) bool { return one.Name == path })].Origin
}

// CheckAccess refuses a configuration that lets strangers in. Beyond this machine the API of
// intents listens only with API keys, or with open access.
func (s Settings) CheckAccess(keys bool) error {
	if keys || s.Delivery.OpenAccess || config.IsLoopback(s.Front.Listen) {
		return nil
	}
	return config.Problems{{
		Origin: "serve", Setting: "relay.listen",
		Text: s.Front.Listen + " can be reached from other machines, and there is no API key yet, so anybody could have transactions signed. " +
			"Make a key (relayer keys create), listen on 127.0.0.1, or set open-access to true if something in front of the relayer keeps strangers out",
	}}
}
