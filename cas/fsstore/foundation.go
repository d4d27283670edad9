package fsstore

import (
	"context"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// The foundation of a store are the nodes that it is made with
// ([cas.Kinds.Foundation]). They become durable before format.json does, so that no
// later commit needs to flush them again: they are the types of nearly every node of
// a step. The schemas of later versions are flushed like any other node.

// layFoundation makes the foundation durable; at is its timestamp.
func (s *Store) layFoundation(ctx context.Context, at int64) error {
	nodes := s.kinds.Foundation()
	for i := range nodes {
		nodes[i].Timestamp = at
	}
	files, err := s.plan(ctx, nodes)
	if err != nil {
		return err
	}
	return durable.WriteAll(s.fs, files, durable.Full)
}

// isFoundation reports whether a node is durable since the store was made. It
// is not asked of a store of the original's, which nobody made for us.
func (s *Store) isFoundation(h cas.Hash) bool {
	return s.founded && s.kinds.InFoundation(h)
}

// onlyFoundation reports whether the nodes in dir are at most a foundation:
// someone was killed while making the store, before it had a format.
func onlyFoundation(dir string) (bool, error) {
	known := map[string]bool{}
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		for _, n := range cas.NewKinds(a).Foundation() {
			known[string(n.Hash)+nodeExt] = true
		}
	}
	shards, err := os.ReadDir(filepath.Join(dir, nodesDir))
	if err != nil || len(shards) > len(known) {
		return false, err
	}
	for _, shard := range shards {
		entries, err := os.ReadDir(filepath.Join(dir, nodesDir, shard.Name()))
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if hashOf(e.Name()) != "" && !known[e.Name()] {
				return false, nil
			}
		}
	}
	return true, nil
}
