package fsstore

import (
	"context"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// The foundation of a store are the schema nodes of our kinds and the
// meta-schema. They become durable before format.json does, so that no later
// commit needs to flush them again: they are the types of every node of a step.

// foundation are its nodes, the meta-schema first.
func foundation(kinds *cas.Kinds) []cas.Node {
	nodes := []cas.Node{kinds.Meta()}
	for _, k := range protocol.Kinds() {
		nodes = append(nodes, kinds.Schema(k))
	}
	return nodes
}

// layFoundation makes the foundation durable; at is its timestamp.
func (s *Store) layFoundation(ctx context.Context, at int64) error {
	nodes := foundation(s.kinds)
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
	if !s.founded {
		return false
	}
	for _, n := range foundation(s.kinds) {
		if n.Hash == h {
			return true
		}
	}
	return false
}

// onlyFoundation reports whether the nodes in dir are at most a foundation:
// someone was killed while making the store, before it had a format.
func onlyFoundation(dir string) (bool, error) {
	known := map[string]bool{}
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		for _, n := range foundation(cas.NewKinds(a)) {
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
