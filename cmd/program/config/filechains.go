package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// chains reads the list of chains:
//
//	chains:
//	  - id: 42431
//	    name: tempo            # optional
//	    confirmations: 12      # optional
//	    fee: {ceiling: 7}      # optional: settings that may differ from chain to chain
//	    endpoints:
//	      - http://a
//	      - {url: http://b, name: b, websocket: ws://b}
//	      - {url: http://c, rate: 50, burst: 100, daily: 1000000, concurrency: 16}
func (f *file) chains(n ast.Node) []Chain {
	var chains []Chain
	var nodes []ast.Node
	for i, item := range n.(*ast.SequenceNode).Values {
		before := len(f.resolver.problems)
		c := f.chain(fmt.Sprintf("chains[%d]", i), item)
		if len(f.resolver.problems) == before {
			chains, nodes = append(chains, c), append(nodes, item)
		}
	}
	checkChains(chains, func(i int, problem error) { f.refuse(nodes[i], "chains", problem.Error()) })
	return chains
}

func (f *file) chain(path string, n ast.Node) (c Chain) {
	hasID := false
	f.fields(path, n, append([]field{
		{"id", func(n ast.Node) {
			hasID = true
			f.item(path+".id", n, number, func(text string) (err error) {
				c.ID, err = parseChainID(text)
				return err
			})
		}},
		{"name", func(n ast.Node) { c.Name = f.text(path+".name", n) }},
		{"confirmations", func(n ast.Node) {
			f.item(path+".confirmations", n, number, func(text string) (err error) {
				c.Confirmations, err = parseBlocks(text)
				return err
			})
		}},
		{"endpoints", func(n ast.Node) { c.Endpoints = f.endpoints(path+".endpoints", n) }},
	}, f.own(path, &c.Own)...))
	if !hasID {
		f.refuse(n, path, "has no id")
	}
	return c
}

// own lists the sections of a chain's entry that hold the chain's own settings.
func (f *file) own(path string, into *[]Own) (sections []field) {
	members := map[string][]field{}
	for _, s := range f.resolver.table {
		if s.own == nil {
			continue
		}
		section, name, _ := strings.Cut(s.path, ".")
		if members[section] == nil {
			sections = append(sections, field{section, func(n ast.Node) { f.fields(path+"."+section, n, members[section]) }})
		}
		members[section] = append(members[section], field{name, func(n ast.Node) {
			f.item(path+"."+s.path, n, s.kind, func(text string) error {
				*into = append(*into, Own{s.path, text, f.line(n)})
				return s.own(text)
			})
		}})
	}
	return sections
}

func (f *file) endpoints(path string, n ast.Node) (endpoints []Endpoint) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		f.refuse(n, path, "must be a list of URLs")
		return nil
	}
	for i, item := range list.Values {
		path := fmt.Sprintf("%s[%d]", path, i)
		e := Endpoint{}
		if _, detailed := item.(*ast.MappingNode); !detailed {
			e.URL = NewSecret(f.text(path, item))
		} else {
			f.fields(path, item, append([]field{
				{"url", func(n ast.Node) { e.URL = NewSecret(f.text(path+".url", n)) }},
				{"websocket", func(n ast.Node) { e.WebSocket = NewSecret(f.text(path+".websocket", n)) }},
				{"name", func(n ast.Node) { e.Name = f.text(path+".name", n) }},
			}, f.budget(path, &e.Budget)...))
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}

// item reads one scalar of a list entry.
func (f *file) item(path string, n ast.Node, want kind, take func(text string) error) {
	value, err := scalar(n, want)
	switch {
	case err == nil && value == "":
		err = errors.New("has no value")
	case err == nil:
		err = take(value)
	}
	if err != nil {
		f.refuse(n, path, err.Error())
	}
}

func (f *file) text(path string, n ast.Node) (value string) {
	f.item(path, n, text, func(text string) error {
		value = text
		return nil
	})
	return value
}
