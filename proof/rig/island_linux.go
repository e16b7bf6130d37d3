package rig

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Island is a network namespace. Its processes reach the outside only through its cables. The
// kernel drops packets on a cut cable: no end is closed, no error is sent.
//
// It requires root, and the programs ip and tc.
type Island struct {
	name   string
	cables []*Cable
}

// islandPrefix begins the names of our namespaces; the creating process's id follows.
const islandPrefix = "wt-"

// NewIsland creates an island. It removes islands left behind by ended processes.
func NewIsland() (*Island, error) {
	if err := removeOrphans(); err != nil {
		return nil, err
	}
	i := &Island{name: fmt.Sprintf("%s%d-%s", islandPrefix, os.Getpid(), letters(4))}
	if err := command("ip", "netns", "add", i.name); err != nil {
		return nil, err
	}
	if err := command("ip", "-n", i.name, "link", "set", "lo", "up"); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

func removeOrphans() error {
	names, err := os.ReadDir("/run/netns")
	if err != nil {
		return nil //nolint:nilerr // there are none yet
	}
	for _, n := range names {
		rest, ours := strings.CutPrefix(n.Name(), islandPrefix)
		digits, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(digits)
		if !ours || err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		if err := command("ip", "netns", "del", n.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Wrap is the prefix of a command line that runs on the island.
func (i *Island) Wrap() []string { return []string{"ip", "netns", "exec", i.name} }

// Close removes the island with its cables. A process on the island keeps it alive until the
// process has ended.
func (i *Island) Close() error {
	var errs []error
	for _, c := range i.cables { // otherwise they would exist a moment longer
		errs = append(errs, command("ip", "link", "del", c.device))
	}
	return errors.Join(append(errs, command("ip", "netns", "del", i.name))...)
}

// Cable connects an island to the outside through two addresses of its own.
type Cable struct {
	Near, Far string // addresses of the outer end and of the island's end

	device string // the outer end; the island's end has the prefix i
	island string
	bent   bool
}

// Cable adds a cable.
func (i *Island) Cable() (*Cable, error) {
	// 198.18.0.0/15 is reserved for measurements on closed networks (RFC 2544, appendix C.2.2).
	var b [3]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	net := fmt.Sprintf("198.%d.%d.%d", 18+b[0]&1, b[1], b[2]&^3)
	last := strings.LastIndexByte(net, '.')
	first, err := strconv.Atoi(net[last+1:])
	if err != nil {
		return nil, err
	}
	c := &Cable{
		Near: fmt.Sprintf("%s%d", net[:last+1], first+1), Far: fmt.Sprintf("%s%d", net[:last+1], first+2),
		device: "wt" + letters(5), island: i.name,
	}
	if err := command("ip", "link", "add", c.device, "type", "veth", "peer", "name", "i"+c.device, "netns", i.name); err != nil {
		return nil, err
	}
	i.cables = append(i.cables, c)
	for _, args := range [][]string{
		{"ip", "addr", "add", c.Near + "/30", "dev", c.device},
		{"ip", "link", "set", c.device, "up"},
		{"ip", "-n", i.name, "addr", "add", c.Far + "/30", "dev", "i" + c.device},
		{"ip", "-n", i.name, "link", "set", "i" + c.device, "up"},
		{"tc", "qdisc", "add", "dev", c.device, "clsact"},
	} {
		if err := command(args...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Cut drops packets from the island, to the island, or both, until [Cable.Mend].
func (c *Cable) Cut(fromIsland, toIsland bool) error {
	var errs []error
	for direction, cut := range map[string]bool{"ingress": fromIsland, "egress": toIsland} {
		if cut {
			// A program of one instruction: return 2, TC_ACT_SHOT of linux/pkt_cls.h.
			errs = append(errs, command("tc", "filter", "add", "dev", c.device, direction, "bpf", "da", "bytecode", "1,6 0 0 2,"))
		}
	}
	return errors.Join(errs...)
}

// Narrow limits the cable to bitsPerSecond each way, and drops packets that wait for long.
func (c *Cable) Narrow(bitsPerSecond int) error {
	c.bent = true
	shape := func(device string) []string {
		return []string{"tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", fmt.Sprintf("%dbit", bitsPerSecond), "burst", "16kb", "latency", "400ms"}
	}
	far := append([]string{"ip", "netns", "exec", c.island}, shape("i"+c.device)...)
	return errors.Join(command(shape(c.device)...), command(far...))
}

// Mend removes all faults of the cable.
func (c *Cable) Mend() error {
	errs := []error{
		command("tc", "filter", "del", "dev", c.device, "ingress"),
		command("tc", "filter", "del", "dev", c.device, "egress"),
	}
	if c.bent {
		c.bent = false
		errs = append(errs, command("tc", "qdisc", "del", "dev", c.device, "root"),
			command("ip", "netns", "exec", c.island, "tc", "qdisc", "del", "dev", "i"+c.device, "root"))
	}
	return errors.Join(errs...)
}

func command(args ...string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil { //nolint:noctx // it takes milliseconds
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// letters returns n random characters for names that must not collide.
func letters(n int) string { return strings.ToLower(rand.Text()[:n]) }
