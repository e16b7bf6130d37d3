package program

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/infra/keys/web3signer"
)

// grace is the time to finish open requests at the end, beyond the maximum duration of one.
const grace = time.Second

// serve serves the keys until the context ends.
func serve(ctx context.Context, s settings, secured *tls.Config, h held, log *slog.Logger, listening func(net.Addr)) error {
	handler, err := web3signer.Handler(h.signers, web3signer.Settings{AtOnce: s.atOnce, Timeout: s.timeout, Check: h.check, Log: log})
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	if secured != nil {
		secured.NextProtos = []string{"http/1.1"}
		listener = tls.NewListener(listener, secured)
	}
	// Without TLS requests come from this machine, and with TLS from the holder of a
	// certificate. In both cases a web page in that machine's browser is refused.
	guard := webguard.Guard{AnyHost: secured != nil}
	server := &http.Server{
		Handler:           guard.Handler(handler),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: readTimeout + s.timeout + grace, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	for i, one := range h.signers {
		log.Info("key", "signer", one, "key", h.names[i])
	}
	log.Info("serves", "address", listener.Addr().String(), "tls", secured != nil)
	if listening != nil {
		listening(listener.Addr())
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout+grace)
	defer cancel()
	err = server.Shutdown(ending)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
