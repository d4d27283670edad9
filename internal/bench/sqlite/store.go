package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	_ "modernc.org/sqlite" // the driver

	"github.com/united-workforce/uwf/cas"
)

// store keeps nodes in one table of a database. A commit is durable when it
// returns, as ours are: synchronous is FULL.
type store struct {
	db    *sql.DB
	kinds *cas.Kinds
}

var _ cas.Store = (*store)(nil)

func open(ctx context.Context, path string) (*store, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS node (hash TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &store{db: db, kinds: cas.NewKinds(cas.XXH3)}, nil
}

func (s *store) close() error { return s.db.Close() }

// Algorithm implements [cas.Reader].
func (s *store) Algorithm() cas.Algorithm { return cas.XXH3 }

// Kinds implements [cas.Reader].
func (s *store) Kinds() *cas.Kinds { return s.kinds }

// Get implements [cas.Getter]; the node is verified as in a file.
func (s *store) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	var body []byte
	err := s.db.QueryRowContext(ctx, "SELECT body FROM node WHERE hash = ?", string(h)).Scan(&body)
	if errors.Is(err, sql.ErrNoRows) {
		return cas.Node{}, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	}
	if err != nil {
		return cas.Node{}, err
	}
	return cas.XXH3.UnmarshalFile(h, body)
}

// Has implements [cas.Store].
func (s *store) Has(ctx context.Context, h cas.Hash) (bool, error) {
	var n int
	err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM node WHERE hash = ?", string(h)).Scan(&n)
	return n > 0, err
}

// Put implements [cas.Store]: here it is durable, too.
func (s *store) Put(ctx context.Context, nodes ...cas.Node) error { return s.Commit(ctx, nodes...) }

// Commit implements [cas.Store], but for the comparison with what is there.
func (s *store) Commit(ctx context.Context, nodes ...cas.Node) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, "INSERT OR IGNORE INTO node VALUES (?, ?)")
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if err := cas.XXH3.Check(n); err != nil {
				return err
			}
			if _, err := insert.ExecContext(ctx, string(n.Hash), cas.MarshalFile(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// All implements [cas.Store].
func (s *store) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		rows, err := s.db.QueryContext(ctx, "SELECT hash FROM node WHERE hash >= ? ORDER BY hash", prefix)
		if err != nil {
			yield("", err)
			return
		}
		defer func() { _ = rows.Close() }() // Err has told all
		for rows.Next() {
			var h cas.Hash
			if err := rows.Scan(&h); !yield(h, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield("", err)
		}
	}
}

// change makes one transaction.
func (s *store) change(ctx context.Context, edit func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := edit(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
