package ocascli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/suggest"
)

// meant finds the node that a person means, by its place in a thread, if the
// program knows places, or as [node].
func (c *CLI) meant(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	if c.Place != nil && strings.Contains(arg, "@") {
		return c.Place(ctx, arg)
	}
	h, err := node(ctx, s, arg)
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		coded.Hints = append(coded.Hints, c.Program+" list shows hashes")
	}
	return h, err
}

// node finds a node by hash or unique prefix.
func node(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	h, err := cas.Resolve(ctx, s, arg)
	var many *cas.AmbiguousError
	switch {
	case errors.As(err, &many):
		var names []string
		for _, c := range many.Candidates[:min(5, len(many.Candidates))] {
			names = append(names, string(c))
		}
		return "", cmdline.NotFound(fmt.Sprintf("hash %q is ambiguous", arg), "give more characters: "+strings.Join(names, ", "))
	case errors.Is(err, cas.ErrNotFound):
		return "", cmdline.NotFound("unknown hash: "+arg, NearHashes(ctx, s, arg)...)
	}
	return h, err
}

// maxNear bounds how many hashes are compared with one that is not there.
const maxNear = 50_000

// NearHashes are hints at a node that may have been meant by a hash that is not
// there: those that begin alike are looked at first.
func NearHashes(ctx context.Context, s cas.Store, arg string) []string {
	word := protocol.FoldCrockford(arg)
	if n := len(word); n < 11 || n > 15 {
		return nil // fewer characters are a prefix, and near to too many
	}
	for _, prefix := range []string{word[:2], ""} {
		var known []string
		for h, err := range s.All(ctx, prefix) {
			if err != nil || len(known) == maxNear {
				break
			}
			known = append(known, string(h))
		}
		if near := suggest.Nearest(word, known, 1); len(near) > 0 {
			return []string{"did you mean " + near[0] + "?"}
		}
	}
	return nil
}

// meta names the meta-schema: the type of schemas.
const meta = "schema"

// typeOf finds a type by the name of a kind (step, @uwf/step), by "schema" for
// the meta-schema, by the original's name (@ocas/string), or by hash.
func typeOf(ctx context.Context, s cas.Store, arg string) (cas.Hash, error) {
	if isText(arg) {
		arg = textType(s)
	}
	if n, ok := primitive(s, arg); ok {
		return n.Hash, nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(arg, protocol.TitlePrefix), originals)
	if t, ok := protocol.ParseType(name); ok && t.Known() {
		return s.Kinds().Schema(t).Hash, nil
	}
	if name == meta {
		return s.Kinds().MetaHash(), nil
	}
	h, err := node(ctx, s, arg)
	if err == nil {
		return h, mustBeSchema(ctx, s, h)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		var names []string
		for _, t := range protocol.Types() {
			names = append(names, t.String())
		}
		names = append(names, meta)
		coded.Message = "schema not found: " + arg
		if near := suggest.Nearest(arg, names, 1); len(near) > 0 {
			coded.Hints = append(coded.Hints, "did you mean "+near[0]+"?")
		}
		coded.Hints = append(coded.Hints, "a hash, or one of "+strings.Join(names, ", "))
	}
	return "", err
}

// mustBeSchema refuses a node of another kind where a type must stand.
func mustBeSchema(ctx context.Context, s cas.Store, h cas.Hash) error {
	n, err := s.Get(ctx, h)
	if err != nil || n.Type == s.Kinds().MetaHash() || n.Type == n.Hash {
		return err
	}
	return cmdline.Invalid(fmt.Sprintf("node %s is not a schema, so it cannot be the type of a value", h),
		fmt.Sprintf("its own type is %s: did you mean that?", n.Type), "ocas schema list")
}
