package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// stateDB is Hermes's own record of its sessions: a SQLite database that Hermes
// may be writing while it is read.
type stateDB struct {
	db      *sql.DB
	session map[string]bool // columns that this version has
	message map[string]bool
}

// openStateDB opens the database for reading. Errors: fs.ErrNotExist if there is
// none, and what SQLite says.
func openStateDB(ctx context.Context, path string) (*stateDB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	where := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)"}
	db, err := sql.Open("sqlite", where.String())
	if err != nil {
		return nil, err
	}
	s := &stateDB{db: db}
	if s.session, err = s.columns(ctx, "sessions"); err == nil {
		s.message, err = s.columns(ctx, "messages")
	}
	if err == nil && len(s.session)+len(s.message) == 0 { // of a session that was not kept
		err = fs.ErrNotExist
	}
	if err == nil && (!s.session["id"] || !s.message["session_id"]) {
		err = errors.New("it has no tables of sessions and messages that this version of uwf-hermes knows")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	return s, nil
}

func (s *stateDB) close() error { return s.db.Close() }

func (s *stateDB) columns(ctx context.Context, table string) (map[string]bool, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		found[name] = true
	}
	return found, rows.Err()
}

// pick lists columns for a SELECT; one that this version lacks is NULL.
func pick(has map[string]bool, names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = name
		if !has[name] {
			list[i] = "NULL"
		}
	}
	return strings.Join(list, ", ")
}

// load reads a session with its messages, oldest first. Errors: errNoSession.
func (s *stateDB) load(ctx context.Context, id string) (session, error) {
	out := session{id: id}
	var model, parent sql.NullString
	var input, output, read, write, reasoning sql.NullInt64
	var estimated, actual sql.NullFloat64
	columns := pick(s.session, "model", "parent_session_id", "input_tokens", "output_tokens", "cache_read_tokens",
		"cache_write_tokens", "reasoning_tokens", "estimated_cost_usd", "actual_cost_usd")
	err := s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM sessions WHERE id = ?", id).
		Scan(&model, &parent, &input, &output, &read, &write, &reasoning, &estimated, &actual)
	if errors.Is(err, sql.ErrNoRows) {
		return out, errNoSession
	}
	if err != nil {
		return out, fmt.Errorf("session %s: %w", id, err)
	}
	out.model, out.parent = model.String, parent.String
	out.usage = &protocol.Usage{
		InputTokens: input.Int64, OutputTokens: output.Int64, CacheReadTokens: read.Int64,
		CacheWriteTokens: write.Int64, ReasoningTokens: reasoning.Int64,
	}
	switch {
	case actual.Valid:
		out.usage.CostUSD = &actual.Float64
	case estimated.Valid:
		out.usage.CostUSD = &estimated.Float64
	}
	out.messages, err = s.messages(ctx, id)
	return out, err
}

// messages reads what was said, without what was taken back.
func (s *stateDB) messages(ctx context.Context, id string) ([]message, error) {
	query := "SELECT " + pick(s.message, "role", "content", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "timestamp") +
		" FROM messages WHERE session_id = ?"
	if s.message["active"] {
		query += " AND active IS NOT 0"
	}
	rows, err := s.db.QueryContext(ctx, query+" ORDER BY id", id)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	defer rows.Close()
	var list []message
	for rows.Next() {
		var role, content, calls, callID, reasoning, thought sql.NullString
		var at sql.NullFloat64
		if err := rows.Scan(&role, &content, &calls, &callID, &reasoning, &thought, &at); err != nil {
			return nil, fmt.Errorf("session %s: %w", id, err)
		}
		m := message{Role: role.String, Content: cliagent.Content(content.String), ToolCallID: callID.String, Reasoning: reasoning.String, at: at.Float64}
		if m.Reasoning == "" {
			m.Reasoning = thought.String
		}
		if calls.String != "" {
			_ = json.Unmarshal([]byte(calls.String), &m.ToolCalls) // of another shape: the rest of the message counts
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// isMissing reports whether a file of Hermes is not there.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
