package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tempo-watchtower/watchtower/api/webguard"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest"
	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

const clusterUsage = `esdouble cluster runs a double of an EventStoreDB cluster in one process until it is
interrupted. By default it has the delays and faults seen on real servers. It prints the URL of
all nodes, and the address for esdouble control.

A range of durations is written as 0s..20ms; each time a new value is drawn from it.`

const defaultControl = "127.0.0.1:2112"

// runCluster serves a cluster until ctx ends.
func runCluster(ctx context.Context, args []string, stdout io.Writer) error {
	flags := newFlags("esdouble cluster", clusterUsage, stdout)
	nodes := flags.Int("nodes", 3, "number of nodes")
	dir := flags.String("dir", "", "folder that keeps the committed log; without it the log is in memory")
	port := flags.Uint16("base-port", 2113, "port of node 1 on 127.0.0.1, followed by the other nodes'; 0 means free ports")
	at := flags.String("control", defaultControl, "address of the control server; everybody who reaches it may kill nodes")
	version := flags.String("version", "", "version that the nodes report")
	settings := addSettings(flags, esdbcluster.Hard(0))
	if err := parse(flags, args, false); err != nil {
		return err
	}
	if *nodes < 1 {
		return fmt.Errorf("a cluster of %d nodes", *nodes)
	}
	file := ""
	if *dir != "" {
		if err := os.MkdirAll(*dir, 0o700); err != nil {
			return err
		}
		file = filepath.Join(*dir, "events.jsonl")
	}
	data, err := open(file)
	if err != nil {
		return err
	}
	s := settings()
	s.Nodes = *nodes
	cluster, err := esdbtest.NewCluster(esdbtest.Options{
		Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(*port))), Data: data, Version: *version, Cluster: s,
	})
	if err != nil {
		return errors.Join(err, data.Close())
	}
	err = serveControl(ctx, cluster, *at, stdout)
	cluster.Stop()
	return errors.Join(err, data.Close())
}

// serveControl serves the commands of esdouble control until ctx ends.
func serveControl(ctx context.Context, cluster *esdbtest.Cluster, at string, stdout io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: guarded(cluster), ReadHeaderTimeout: time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })() //nolint:errcheck,gosec // the end of the program
	fmt.Fprintf(stdout, "a double of an EventStoreDB cluster, not a server, on %s\ncontrol: --at %s\n", cluster.URL(), listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// guarded is the handler that web pages cannot reach.
func guarded(cluster *esdbtest.Cluster) http.Handler {
	return webguard.Guard{}.Handler(handler(cluster))
}

// handler answers GET /status, and POST /kill-node/N, /start-node/N and /resign/N.
func handler(cluster *esdbtest.Cluster) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { printStatus(w, cluster) })
	for name, do := range map[string]func(node int) error{
		"kill-node":  func(node int) error { cluster.Nodes[node-1].Stop(); return nil },
		"start-node": func(node int) error { return cluster.Nodes[node-1].Start() },
		"resign":     cluster.Resign,
	} {
		mux.HandleFunc("POST /"+name+"/{node}", func(w http.ResponseWriter, r *http.Request) {
			node, err := strconv.Atoi(r.PathValue("node"))
			if err != nil || node < 1 || node > len(cluster.Nodes) {
				http.Error(w, fmt.Sprintf("there is no node %s: nodes are 1 to %d", r.PathValue("node"), len(cluster.Nodes)), http.StatusNotFound)
				return
			}
			if err := do(node); err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
			}
		})
	}
	return mux
}

// printStatus prints a line for each node and the URL of all nodes.
func printStatus(w io.Writer, cluster *esdbtest.Cluster) {
	for i, m := range cluster.Model.State() {
		fmt.Fprintln(w, m.Node, cluster.Nodes[i].Address(), m.State)
	}
	fmt.Fprintln(w, cluster.URL())
}
