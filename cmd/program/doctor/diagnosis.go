// Package doctor explains what keeps delivery from its work, from the log, the queue and the nodes of a
// configuration: each finding with its automatic next step, and the operator's possible actions. It
// only reads, so services may run meanwhile.
package doctor

import (
	"fmt"
	"io"

	"github.com/tempo-watchtower/watchtower/cmd/program/terminal"
)

// Finding is a fact that an operator should know.
type Finding struct {
	Code string `json:"code"`
	Says string `json:"says"`
	// Next is the automatic next step; Do is the operator's possible action.
	Next string `json:"next,omitempty"`
	Do   string `json:"do,omitempty"`
}

// Fact is a fact about a part.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Part is the diagnosis of one part: the store, an endpoint, the queue or a transaction.
type Part struct {
	Name     string    `json:"name"`
	Well     bool      `json:"well"` // there is no finding
	Facts    []Fact    `json:"facts"`
	Findings []Finding `json:"findings"`
}

func partOf(name string) *Part { return &Part{Name: name, Facts: []Fact{}, Findings: []Finding{}} }

func (p *Part) say(name, format string, args ...any) {
	p.Facts = append(p.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

func (p *Part) find(f Finding) { p.Findings = append(p.Findings, f) }

// Diagnosis is the diagnosis of all parts.
type Diagnosis struct {
	Well  bool    `json:"well"`
	Parts []*Part `json:"parts"`
}

func (d *Diagnosis) add(parts ...*Part) {
	for _, p := range parts {
		p.Well = len(p.Findings) == 0
		d.Parts = append(d.Parts, p)
	}
	d.Well = true
	for _, p := range d.Parts {
		d.Well = d.Well && p.Well
	}
}

// Tell writes a diagnosis as text.
func Tell(to io.Writer, d Diagnosis) error {
	for _, p := range d.Parts {
		if err := terminal.Remark(to, "%s", terminal.Plain(p.Name)); err != nil {
			return err
		}
		var told []terminal.Property
		for _, f := range p.Facts {
			told = append(told, terminal.Property{Name: "  " + f.Name, Value: f.Value})
		}
		if err := terminal.Properties(to, told); err != nil {
			return err
		}
		err := TellFindings(to, p.Findings)
		if err == nil && p.Well {
			err = terminal.Remark(to, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TellFindings writes findings as text, each with what follows by itself and what an operator can do.
func TellFindings(to io.Writer, all []Finding) error {
	if len(all) == 0 {
		return terminal.Remark(to, "%s", terminal.Mark(to, "ok", "Nothing is wrong."))
	}
	for i, f := range all {
		text := fmt.Sprintf("%d. [%s] %s", i+1, terminal.Mark(to, "warning", f.Code), terminal.Plain(f.Says))
		if f.Next != "" {
			text += "\n   By itself: " + terminal.Plain(f.Next)
		}
		if f.Do != "" {
			text += "\n   You can: " + terminal.Plain(f.Do)
		}
		if err := terminal.Remark(to, "%s", text); err != nil {
			return err
		}
	}
	return terminal.Remark(to, "")
}
