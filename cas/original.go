package cas

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// The original's nodes. A store whose hash function is xxh64 may hold nodes that
// the original has written, under types of its own, which differ from version to
// version. They keep their hashes, so they are not rewritten but read as what
// they stand for. Their types are known by the titles of their schemas, and by
// the fields that such a node cannot do without.

// originalTitles are the original's titles of our kinds.
var originalTitles = map[string]protocol.Kind{
	"Workflow":      protocol.KindWorkflow,
	"StartNode":     protocol.KindStart,
	"StepNode":      protocol.KindStep,
	"SuspendOutput": protocol.KindSuspend,
}

// originalFields are what a schema of the original's must speak of to be taken
// for a kind: a user may give an output schema any title.
var originalFields = map[protocol.Kind][]string{
	protocol.KindWorkflow: {"name", "roles"},
	protocol.KindStart:    {"workflow", "prompt"},
	protocol.KindStep:     {"start", "prev", "role", "output", "detail"},
	protocol.KindSuspend:  {"$status", "reason"},
	protocol.KindDetail:   {"sessionId"},
	protocol.KindTurn:     {"role", "content"},
}

// originalKind tells what the nodes of a schema are. Every agent of the original
// has its own detail and turn: they are known by what they end in.
func originalKind(schema any) protocol.Kind {
	s, _ := schema.(object)
	if len(s) == 1 && s["type"] == "string" {
		return protocol.KindText
	}
	title, _ := s["title"].(string)
	kind := originalTitles[title]
	switch {
	case strings.HasSuffix(title, "-detail"):
		kind = protocol.KindDetail
	case strings.HasSuffix(title, "-turn"):
		kind = protocol.KindTurn
	}
	properties, _ := s["properties"].(object)
	for _, field := range originalFields[kind] {
		if _, ok := properties[field]; !ok {
			return ""
		}
	}
	return kind
}

// OriginalStep reads a step of the original's, false if n is none. What such a
// node does not say is left zero: its index, visits and limitBase, which follow
// from the chain (package thread).
func OriginalStep(ctx context.Context, r Reader, n Node) (protocol.Step, bool, error) {
	kind, version, err := r.Kinds().Of(ctx, r, n.Type)
	if err != nil || kind != protocol.KindStep || version != 0 {
		return protocol.Step{}, false, err
	}
	var o originalStep
	if err := decodeInto(n.Payload, &o); err != nil {
		return protocol.Step{}, false, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	s := o.step()
	if err := s.Validate(); err != nil {
		return protocol.Step{}, false, &CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("it is not a step: %v", err)}
	}
	return s, true, nil
}

// asOriginal reads a node of the original's that stands for a payload of ours.
func asOriginal[P protocol.Payload](n Node) (P, error) {
	var zero P
	var form interface{ payload() protocol.Payload }
	switch zero.Kind() {
	case protocol.KindWorkflow:
		form = &originalWorkflow{}
	case protocol.KindDetail:
		form = &originalDetail{}
	case protocol.KindTurn:
		form = &originalTurn{}
	default:
		return decodeAs[P](n) // the forms are the same
	}
	if err := decodeInto(n.Payload, form); err != nil {
		return zero, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	p, _ := form.payload().(P)
	return p, check(n, p)
}
