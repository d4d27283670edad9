package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Files holds a home's config.yaml and .env. It reads and parses each when it is first needed, and again only
// after it was changed. It is safe for concurrent use.
type Files struct {
	mu     sync.Mutex
	config file
	dotEnv file
	// The last result of [Files.Secrets] and what it was made from.
	secrets []string
	from    [2]fs.FileInfo
	environ []string
}

// Of returns the files of a home.
func Of(dirs home.Dirs) *Files {
	return &Files{config: file{path: dirs.Config()}, dotEnv: file{path: dirs.DotEnv()}}
}

// file is a file of at most a megabyte.
type file struct {
	path string
	info fs.FileInfo // when it was read; nil if it was not
	text []byte
	doc  *yamldoc.Doc // nil unless text was parsed
	err  error        // from parsing
}

// read returns the text of the file.
func (f *file) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		f.info = nil
		return nil, err
	}
	if f.info != nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return f.text, nil
	}
	*f = file{path: f.path}
	text, err := safeopen.ReadFile(f.path, maxFile, safeopen.Follow)
	if err == nil {
		f.text, f.info = text, info
	}
	return text, err
}

// parsed returns the text of the file and its YAML document.
func (f *file) parsed() (text []byte, doc *yamldoc.Doc, err error) {
	if text, err = f.read(); err != nil {
		return nil, nil, err
	}
	if f.doc == nil && f.err == nil {
		f.doc, f.err = yamldoc.Parse(text, yamldoc.Bounds{})
	}
	return text, f.doc, f.err
}

// Load returns the config. A missing file is an empty config. All problems are in one *protocol.Error (code
// invalid) with file, line and a suggestion; its cause is an *InvalidError.
func (f *Files) Load(ctx context.Context, e env.Env) (protocol.Config, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Config{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.config.read()
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Config{}, nil
	}
	if err != nil {
		return protocol.Config{}, fmt.Errorf("read config: %w", err)
	}
	_, doc, err := f.config.parsed()
	r := report{path: f.config.path, src: text}
	c := r.decode(doc, err, e)
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// Text returns the text of config.yaml.
func (f *Files) Text() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.config.read()
}

// Secrets returns all values that must be neither stored nor shown: the values in .env except plain settings,
// the keys of providers, and from the variables of agents and of e those with a secret's name, with a
// password in a URL, or passed to commands. It never fails: an unreadable file has no secrets. What was secret remains so:
// a file can be damaged while it is edited, and an agent can know a key that was replaced.
func (f *Files) Secrets(e env.Env) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	vars, _ := f.variables()
	_, doc, _ := f.config.parsed()
	if from := [2]fs.FileInfo{f.config.info, f.dotEnv.info}; f.environ == nil || from != f.from || !slices.Equal(e.Environ, f.environ) {
		found := append(secretsOf(e, vars, doc), f.secrets...)
		slices.Sort(found)
		f.secrets, f.from, f.environ = slices.Compact(found), from, append([]string{}, e.Environ...)
	}
	return slices.Clone(f.secrets)
}

// variables returns the variables in .env; a missing file has none.
func (f *Files) variables() (map[string]string, error) {
	text, err := f.dotEnv.read()
	return variablesIn(f.dotEnv.path, text, err)
}

// WithDotEnv returns e with the variables of .env that e doesn't set; an empty value counts as unset. Errors
// contain only the names of variables.
func (f *Files) WithDotEnv(e env.Env) (env.Env, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	vars, err := f.variables()
	return withVariables(e, vars, err)
}
