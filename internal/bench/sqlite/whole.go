package main

import (
	"context"
	"database/sql"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
)

// What our own programs do with a whole store.

// copyFrom puts all nodes of a store of ours into the database.
func (s *store) copyFrom(ctx context.Context, dir string) error {
	from, err := fsstore.Open(ctx, dir, fsstore.Options{})
	if err != nil {
		return err
	}
	var nodes []cas.Node
	for h, err := range from.All(ctx, "") {
		if err != nil {
			return err
		}
		n, err := from.Get(ctx, h)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	return s.Commit(ctx, nodes...)
}

// verify checks hash and schema of each node, and the database.
func (s *store) verify(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "SELECT hash, body FROM node")
	if err != nil {
		return err
	}
	var nodes []cas.Node
	for rows.Next() {
		var h cas.Hash
		var body []byte
		if err := rows.Scan(&h, &body); err != nil {
			return err
		}
		n, err := cas.XXH3.UnmarshalFile(h, body)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	inspector := cas.NewInspector(s)
	for _, n := range nodes {
		if _, err := inspector.Inspect(ctx, n); err != nil {
			return err
		}
	}
	_, err = s.db.ExecContext(ctx, "PRAGMA integrity_check")
	return err
}

// collect removes what head does not lead to.
func (s *store) collect(ctx context.Context, head string) error {
	needed := map[cas.Hash]bool{}
	for n, err := range cas.Walk(ctx, s, []cas.Hash{cas.Hash(head)}, cas.WalkOptions{FollowTypes: true}) {
		if err != nil {
			return err
		}
		needed[n.Hash] = true
	}
	var garbage []string
	for h, err := range s.All(ctx, "") {
		if err != nil {
			return err
		}
		if !needed[h] {
			garbage = append(garbage, string(h))
		}
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		remove, err := tx.PrepareContext(ctx, "DELETE FROM node WHERE hash = ?")
		if err != nil {
			return err
		}
		for _, h := range garbage {
			if _, err := remove.ExecContext(ctx, h); err != nil {
				return err
			}
		}
		return nil
	})
}

// export writes everything into one new file.
func (s *store) export(ctx context.Context, path string) error {
	_, err := s.db.ExecContext(ctx, "VACUUM INTO ?", path)
	return err
}

// importFrom brings in what export has written, once it has been verified.
func (s *store) importFrom(ctx context.Context, path string) error {
	from, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = from.close() }() // nothing was written
	if err := from.verify(ctx); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, "ATTACH DATABASE ? AS other", path); err != nil {
		return err
	}
	return s.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO main.node SELECT hash, body FROM other.node")
		return err
	})
}
