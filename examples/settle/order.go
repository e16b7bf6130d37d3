package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// order is what the shop expects to be carried out under its key.
type order struct {
	ChainID uint64 `json:"chainId"`
	Calls   []call `json:"calls"`
}

type call struct {
	To    string `json:"to,omitempty"`
	Value string `json:"value"` // decimal; of an order, empty is 0
	Data  string `json:"data,omitempty"`
}

// message is what the shop reads of a message. All that it needs is in it.
type message struct {
	Type    string `json:"type"`
	Request struct {
		Key     string `json:"key"`
		ChainID uint64 `json:"chainId"`
		Calls   []call `json:"calls"`
	} `json:"request"`
	State struct {
		Status  string `json:"status"`
		Hash    string `json:"hash"`
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Receipt *struct {
			Status  int    `json:"status"`
			GasUsed uint64 `json:"gasUsed"`
			Price   string `json:"effectiveGasPrice"`
			Block   struct {
				Number uint64 `json:"number"`
			} `json:"block"`
		} `json:"receipt"`
	} `json:"state"`
}

// settlement is the end of an order.
type settlement struct {
	Order   string `json:"order"`
	Paid    bool   `json:"paid"`
	Reason  string `json:"reason,omitempty"`
	Hash    string `json:"hash,omitempty"`
	Block   uint64 `json:"block,omitempty"`
	GasUsed uint64 `json:"gasUsed,omitempty"`
	Price   string `json:"effectiveGasPrice,omitempty"`
}

// book holds the shop's orders by key, and writes each settlement once. It is safe for concurrent
// use. A real shop keeps it in its database.
type book struct {
	orders map[string]order
	to     io.Writer

	mu      sync.Mutex
	settled map[string]bool
}

func newBook(orders []byte, to io.Writer) (*book, error) {
	b := &book{to: to, settled: map[string]bool{}}
	if err := json.Unmarshal(orders, &b.orders); err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	return b, nil
}

// open returns the number of orders that are not settled.
func (b *book) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.orders) - len(b.settled)
}

// read reads a message, which may come more than once, and settles its order if it is the last one.
// An error means that the message should come again.
func (b *book) read(body []byte) error {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	wanted, known := b.orders[m.Request.Key]
	if !known {
		return nil // it is not an order
	}
	s, ended := judge(m, wanted)
	if !ended {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled[s.Order] {
		return nil
	}
	if err := json.NewEncoder(b.to).Encode(s); err != nil {
		return err
	}
	b.settled[s.Order] = true
	return nil
}

// judge returns the order's settlement; ended is false if more messages follow.
func judge(m message, wanted order) (s settlement, ended bool) {
	s.Order, s.Hash, s.Reason = m.Request.Key, m.State.Hash, m.State.Reason
	if r := m.State.Receipt; r != nil {
		s.Block, s.GasUsed, s.Price = r.Block.Number, r.GasUsed, r.Price
	}
	switch m.State.Status {
	case "completed":
		// The block is final. The calls are the shop's own, and not a no-op that took their nonce.
		s.Paid = m.State.Receipt != nil && m.State.Receipt.Status == 1 && m.State.Kind != "no-op"
		if !same(m, wanted) {
			s.Paid, s.Reason = false, "the calls are not those of the order"
		}
		return s, true
	case "failed", "canceled":
		return s, true
	}
	return s, false
}

// same reports whether a message is about the calls that the shop expects.
func same(m message, wanted order) bool {
	if m.Request.ChainID != wanted.ChainID || len(m.Request.Calls) != len(wanted.Calls) {
		return false
	}
	for i, c := range m.Request.Calls {
		w := wanted.Calls[i]
		if !strings.EqualFold(c.To, w.To) || cmp.Or(c.Value, "0") != cmp.Or(w.Value, "0") || !strings.EqualFold(c.Data, w.Data) {
			return false
		}
	}
	return true
}
