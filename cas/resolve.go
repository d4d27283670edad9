package cas

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
)

// maxCandidates bounds the list in an [AmbiguousError].
const maxCandidates = 16

// Resolve finds the one node whose hash begins with prefix, as a person types
// it. Errors: [ErrNotFound], [*AmbiguousError], those of [Store].All.
func Resolve(ctx context.Context, s Store, prefix string) (Hash, error) {
	if prefix == "" {
		return "", fmt.Errorf("%w: the hash is empty", ErrNotFound)
	}
	folded := protocol.FoldCrockford(prefix)
	if h := Hash(folded); h.Valid() {
		return resolveWhole(ctx, s, h)
	}
	var found []Hash
	for h, err := range s.All(ctx, folded) {
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", prefix, err)
		}
		if found = append(found, h); len(found) == maxCandidates {
			break
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: no hash begins with %q", ErrNotFound, prefix)
	case 1:
		return found[0], nil
	}
	return "", &AmbiguousError{Prefix: prefix, Candidates: found}
}

func resolveWhole(ctx context.Context, s Store, h Hash) (Hash, error) {
	ok, err := s.Has(ctx, h)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNotFound, h)
	}
	return h, nil
}
