package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/tempo-watchtower/watchtower/cmd/relayer/settings"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/keys"
)

// openKeys opens all sources of keys. The returned function closes them.
func openKeys(ctx context.Context, s settings.Signers, environ []string, log *slog.Logger) (ring *keys.Ring, end func(), err error) {
	var all []*keys.Signer
	var remote *keys.Remote
	end = func() {
		for _, one := range all {
			one.Close()
		}
		if remote != nil {
			remote.Close()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	take := func(more []*keys.Signer, err error) error {
		all = append(all, more...)
		return err
	}
	// Keys in the environment that are not configured are refused, not ignored.
	if err := take(keys.Environment(environ, s.Environment, log)); err != nil {
		return nil, end, err
	}
	if s.Keystore != "" {
		if err := take(keys.Keystore(ctx, s.Keystore, keys.PassphraseFile(s.PassphraseFile))); err != nil {
			return nil, end, fmt.Errorf("signers.keystore: %w", err)
		}
	}
	for _, file := range s.P256 {
		one, err := keys.P256File(file)
		if err != nil {
			return nil, end, fmt.Errorf("signers.p256-files: %w", err)
		}
		all = append(all, one)
	}
	if s.Remote.URL != "" {
		if remote, err = keys.NewRemote(remoteOf(s.Remote)); err == nil {
			err = take(remote.Signers(ctx))
		}
		if err != nil {
			return nil, end, fmt.Errorf("signers.remote-url: %w", err)
		}
	}
	if len(all) == 0 {
		return nil, end, errors.New("no keys were found; set signers.keystore, signers.p256-files, signers.environment (RELAYER_PRIVATE_KEY_0 and on) or signers.remote-url")
	}
	if ring, err = keys.NewRing(s.Allowed, all...); err != nil {
		return nil, end, fmt.Errorf("signers.allowed: %w", err)
	}
	if err = checkPayer(s.FeePayer, ring); err != nil {
		return nil, end, err
	}
	log.Info("keys opened", "signers", ring.Addresses())
	return ring, end, nil
}

func remoteOf(s settings.Remote) keys.RemoteSettings {
	return keys.RemoteSettings{
		URL: s.URL, Unencrypted: s.Unencrypted, Authorities: s.Authorities, Certificate: s.Certificate, Key: s.Key,
		Timeout: s.Timeout, Connections: s.Connections,
	}
}

// checkPayer refuses a fee payer whose signatures no chain accepts.
func checkPayer(payer *chain.Address, ring *keys.Ring) error {
	if payer == nil || !slices.Contains(ring.Addresses(), *payer) {
		return nil // another replica may have the key
	}
	signer, err := ring.Signer(*payer)
	if err == nil && signer.Kind() != chain.Secp256k1 {
		err = fmt.Errorf("signers.fee-payer: the key of %s is a %s key; a fee payer needs a %s key", payer, signer.Kind(), chain.Secp256k1)
	}
	return err
}
