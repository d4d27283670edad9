package source

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // pure Go; linked only in this program
)

// ErrBusy reports that a database was written while it was copied.
var ErrBusy = errors.New("it is in use; stop the original's programs first")

// readDatabase reads uwf's variables from a database. SQLite creates files next to a database that it opens,
// so it opens a copy that includes the write-ahead log.
func readDatabase(ctx context.Context, path string) (_ []variable, err error) {
	dir, err := os.MkdirTemp("", "uwf-import-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, databaseFile)
	if err := copyDatabase(path, copied); err != nil {
		return nil, fmt.Errorf("variables %s: %w", path, err)
	}
	vars, err := queryVariables(ctx, copied)
	if err != nil {
		return nil, fmt.Errorf("variables %s: %w", path, err)
	}
	for i := range vars {
		vars[i].from = path
	}
	return vars, nil
}

// parts returns the suffixes of a database's files: the database, its write-ahead log, and its rollback
// journal. SQLite rebuilds the log's index (-shm) when it opens the database.
func parts() []string { return []string{"", "-wal", "-journal"} }

// copyAttempts bounds how many times a copy is tried while the database changes.
const copyAttempts = 5

// copyDatabase makes a consistent copy of a database.
func copyDatabase(from, to string) error {
	for range copyAttempts {
		before, err := stamps(from)
		if err != nil {
			return err
		}
		for _, part := range parts() {
			if err := copyFile(from+part, to+part); err != nil {
				return err
			}
		}
		after, err := stamps(from)
		if err != nil {
			return err
		}
		if before == after {
			return nil
		}
	}
	return ErrBusy
}

// stamps returns a value that changes with the database.
func stamps(path string) (string, error) {
	all := ""
	for _, part := range parts() {
		info, err := os.Stat(path + part)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		all += fmt.Sprintln(part, info.Size(), info.ModTime().UnixNano())
	}
	return all, nil
}

// copyFile copies a file. If it does not exist, neither does the copy.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // opened for reading
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func queryVariables(ctx context.Context, path string) (vars []variable, err error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: filepath.ToSlash(path), RawQuery: "mode=rw"}).String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return nil, err
	}
	if verdict != "ok" {
		return nil, fmt.Errorf("the database is damaged: %s", verdict)
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'vars'").Scan(&tables); err != nil || tables == 0 {
		return nil, err // a database without variables
	}
	rows, err := db.QueryContext(ctx, "SELECT name, schema, value, created, updated, tags FROM vars WHERE name LIKE '@uwf/%' ORDER BY updated DESC, name, schema")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var v variable
		var tags string
		if err := rows.Scan(&v.Name, &v.Schema, &v.Value, &v.Created, &v.Updated, &tags); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(tags), &v.Tags); err != nil {
			v.damage = fmt.Sprintf("tags of %s: %v", v.Name, err)
		}
		vars = append(vars, v)
	}
	return vars, rows.Err()
}
