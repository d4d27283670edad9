package extract

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
)

// choose takes the block that the text begins with, or behind other words the first one that has a
// field of the role's output. The text below it is the body, including any quotes. If a later block is
// the role's output with other values, the answer goes back: it is unclear which one is meant.
// A block in a code fence behind words never counts: it may be a quote, and a reviewer's approval.
func (r Role) choose(ctx context.Context, text string) (chosen Output, err error) {
	known := knownBy(r.Schema)
	relates := func(field string) bool { return field == protocol.StatusKey || known.has(field) }
	err = &InvalidError{Reason: noBlock}
	line := 0
	for _, b := range frontmatter.Blocks(text) {
		out, bad := r.block(ctx, b)
		if _, invalid := errors.AsType[*InvalidError](bad); bad != nil && !invalid {
			return Output{}, bad
		}
		related := b.Keyed && (b.First || b.Mentions(relates))
		switch {
		case line == 0 && (b.First || related):
			chosen, err = out, bad
		case line != 0 && related && bad == nil && err == nil && !reflect.DeepEqual(chosen.Value, out.Value):
			return Output{}, &InvalidError{Reason: fmt.Sprintf("the answer has two frontmatter blocks that differ, "+
				"in lines %d and %d: give one, and put what you quote in a code fence", line, b.Line)}
		}
		if line == 0 && related {
			line = b.Line
		}
	}
	return chosen, err
}

// block is a block as the role's output.
func (r Role) block(ctx context.Context, b frontmatter.Block) (Output, error) {
	if b.Err != nil {
		return Output{}, &InvalidError{Reason: "the frontmatter block is not valid YAML: " + b.Err.Error()}
	}
	out, err := r.accept(ctx, b.Fields)
	out.Body = b.Body
	return out, err
}
