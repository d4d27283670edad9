package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

// secretPerm protects files that may contain keys.
const secretPerm = 0o600

// config imports config.yaml and .env unless they exist.
func (b *importer) config(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := b.configYAML(); err != nil {
		return err
	}
	dotEnv, err := os.ReadFile(filepath.Join(b.source.Home, ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.file(".env", b.options.Dirs.DotEnv(), dotEnv)
}

func (b *importer) configYAML() error {
	path := filepath.Join(b.source.Home, "config.yaml")
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, dropped, err := b.translate(src, path)
	if err != nil {
		b.report.Config.Failed++
		b.problem("config", path, "%v", err)
		return nil
	}
	for _, key := range dropped {
		b.note("config", key, "left out: uwf has no such setting")
	}
	return b.file("config.yaml", b.options.Dirs.Config(), text)
}

// translate returns a config that uwf can read: the text itself if possible, or else the supported settings.
func (b *importer) translate(src []byte, path string) (text []byte, dropped []string, err error) {
	if _, err := config.Parse(src, path, b.options.Env); err == nil {
		return src, nil, nil
	}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		return nil, nil, fmt.Errorf("line %w", err)
	}
	if doc.Root.Kind != yamldoc.Mapping {
		return nil, nil, errors.New("not a mapping")
	}
	kept, dropped := known(doc.Root)
	if text, err = yamltext.Marshal(kept); err != nil {
		return nil, nil, err
	}
	_, err = config.Parse(text, path, b.options.Env)
	var coded *protocol.Error
	if errors.As(err, &coded) {
		err = errors.New(strings.TrimSpace(coded.Message))
	}
	return text, dropped, err
}

// knownKeys lists the original's settings that uwf supports; for a section of named entries, the settings of
// each entry.
var knownKeys = map[string][]string{
	"providers":      {"baseUrl", "apiKey", "apiKeyEnv"},
	"models":         {"provider", "name"},
	"agents":         {"command", "args"},
	"defaultAgent":   nil,
	"defaultModel":   nil,
	"agentOverrides": nil,
	"modelOverrides": nil,
}

// known splits a config into supported settings and the keys of the others.
func known(root *yamldoc.Node) (yamltext.Map, []string) {
	var kept yamltext.Map
	var dropped []string
	for _, e := range root.Entries {
		fields, ok := knownKeys[e.Key]
		switch {
		case !ok:
			dropped = append(dropped, e.Key)
		case fields == nil:
			kept = append(kept, yamltext.Entry{Key: e.Key, Value: e.Value.Value()})
		default:
			section, others := knownIn(e.Value, fields)
			for _, key := range others {
				dropped = append(dropped, e.Key+"."+key)
			}
			kept = append(kept, yamltext.Entry{Key: e.Key, Value: section, Blank: len(kept) > 0})
		}
	}
	return kept, dropped
}

// knownIn is like known for a section of named entries. Agents of the original's broker have no command, so
// there is nothing to start.
func knownIn(section *yamldoc.Node, fields []string) (yamltext.Map, []string) {
	kept, dropped := yamltext.Map{}, []string{}
	for _, thing := range section.Entries {
		var settings yamltext.Map
		for _, e := range thing.Value.Entries {
			if slices.Contains(fields, e.Key) {
				settings = append(settings, yamltext.Entry{Key: e.Key, Value: e.Value.Value()})
			} else {
				dropped = append(dropped, thing.Key+"."+e.Key)
			}
		}
		if len(settings) > 0 {
			kept = append(kept, yamltext.Entry{Key: thing.Key, Value: settings})
		}
	}
	return kept, dropped
}

// file writes a file unless it exists.
func (b *importer) file(name, path string, data []byte) error {
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, data):
		b.report.Config.Present++
		return nil
	case err == nil:
		b.report.Config.Present++
		b.note("config", name, "%s already exists and was not changed", path)
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	b.report.Config.Imported++
	if b.options.DryRun {
		return nil
	}
	if err := durable.MkdirAll(b.fs, filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(b.fs, path, data, secretPerm)
}
