package cas

import (
	"context"
	"fmt"
	"slices"
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

// Original is the kind that a type of the original's stands for, "" if it is
// another type. Errors: those of [Schema] for a type that is not there.
func (k *Kinds) Original(ctx context.Context, r Reader, typ Hash) (protocol.Kind, error) {
	if k.algorithm != XXH64 || k.isOurs(typ) {
		return "", nil
	}
	k.mu.Lock()
	kind, known := k.originals[typ]
	k.mu.Unlock()
	if known {
		return kind, nil
	}
	schema, err := Schema(ctx, r, typ)
	if err != nil {
		return "", err
	}
	kind = originalKind(schema)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.originals[typ] = kind
	return kind, nil
}

func (k *Kinds) isOurs(typ Hash) bool {
	return slices.ContainsFunc(protocol.Kinds(), func(kind protocol.Kind) bool { return k.Hash(kind) == typ })
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
	kind, err := r.Kinds().Original(ctx, r, n.Type)
	if err != nil || kind != protocol.KindStep {
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

// asOriginal reads a node of the original's as a payload of ours, false if it
// does not stand for that kind.
func asOriginal[P protocol.Payload](ctx context.Context, r Reader, n Node) (P, bool, error) {
	var zero P
	kind, err := r.Kinds().Original(ctx, r, n.Type)
	if err != nil || kind != zero.Kind() {
		return zero, false, err
	}
	var form interface{ payload() protocol.Payload }
	switch kind {
	case protocol.KindWorkflow:
		form = &originalWorkflow{}
	case protocol.KindDetail:
		form = &originalDetail{}
	case protocol.KindTurn:
		form = &originalTurn{}
	case protocol.KindStart, protocol.KindText, protocol.KindSuspend:
		p, err := decodeAs[P](n) // the forms are the same
		return p, err == nil, err
	default:
		return zero, false, nil
	}
	if err := decodeInto(n.Payload, form); err != nil {
		return zero, false, &CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	p, ok := form.payload().(P)
	if !ok {
		return zero, false, nil
	}
	return p, true, check(n, p)
}
