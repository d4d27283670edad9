package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// Config is uwf config.
func (a Commands) Config() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "config", Usage: "show and change config.yaml",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "print the whole config; keys are masked",
			}, a.configList),
			a.Leaf(ucli.Command{
				Name: "get", ArgsUsage: "<key>", Usage: "print one value, such as models.default.name; keys are masked",
			}, a.configGet),
			a.Leaf(ucli.Command{
				Name: "set", ArgsUsage: "<key> <value>", Usage: "change one value; comments and everything else stay as they are",
				Description: "The parts of a key are separated by dots; a part with a dot in it stands in double quotes. Lists\n" +
					"and mappings are written as JSON or YAML. The value - is read from stdin, so that a secret is in\n" +
					"nobody's history:\n\n" +
					"   uwf config set models.default.name qwen3\n" +
					"   uwf config set agents.builtin.args '[\"--model\",\"default\"]'\n" +
					"   uwf config set providers.openai.apiKey - < key.txt",
			}, a.configSet),
			a.Leaf(ucli.Command{
				Name: "unset", ArgsUsage: "<key>", Usage: "remove one value; comments and everything else stay as they are",
			}, a.configUnset),
			a.Leaf(ucli.Command{
				Name: "show", Usage: "print what is in force here: your config, and beneath it the project's (.uwf/config.yaml)",
				Description: "A repository's .uwf/config.yaml may choose among the agents, providers and models of your\n" +
					"config and narrow what they may do. It allows nothing, and names no program and no endpoint.",
				Flags: []ucli.Flag{&ucli.BoolFlag{Name: "origin", Usage: "say of each value which file it is from"}},
			}, a.configShow),
			a.Leaf(ucli.Command{
				Name: "edit", Usage: "open config.yaml in $VISUAL or $EDITOR; an invalid file is not saved",
			}, a.configEdit),
			a.Leaf(ucli.Command{
				Name: "path", Usage: "print where config.yaml is",
			}, a.configPath),
		},
	})
}

// rawConfig reads config.yaml as it is written. What is wrong in it is told, and
// stops nobody from looking at it.
func (a Commands) rawConfig(ctx context.Context) (any, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	src, err := config.ReadFile(dirs.Config())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cmdline.NotFound("there is no config yet: "+dirs.Config()+" does not exist",
			"uwf config set defaultAgent <alias>, or write the file: uwf schema config describes it")
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	raw, err := config.Raw(src, dirs.Config())
	if err != nil {
		return nil, err
	}
	if _, err := config.Load(ctx, dirs.Config(), a.Env); err != nil {
		a.Say("uwf: warning: the config cannot be used as it is: %v", err)
	}
	for _, p := range config.Warnings(src, dirs.Config(), a.Env) {
		a.Say("uwf: warning: %s", plaintext.Line(p.Message))
	}
	return raw, nil
}

func (a Commands) configList(ctx context.Context, _ *ucli.Context) error {
	raw, err := a.rawConfig(ctx)
	if err != nil {
		return err
	}
	return a.Print(raw, func(w io.Writer) error { return flatText(w, "", raw) })
}

// configValue answers config get and set.
type configValue struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func (a Commands) configGet(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().First())
	if err != nil {
		return err
	}
	raw, err := a.rawConfig(ctx)
	if err != nil {
		return err
	}
	value, ok := key.Lookup(raw)
	if !ok {
		return cmdline.NotFound("key not found: "+key.String(), nearKeys(key, raw)...)
	}
	return a.Print(configValue{Key: key.String(), Value: value}, func(w io.Writer) error {
		if _, isMap := value.(map[string]any); isMap {
			return flatText(w, key.String(), value)
		}
		_, err := fmt.Fprintln(w, plaintext.Line(scalarText(value)))
		return err
	})
}

// nearKeys are hints at keys that are set.
func nearKeys(key config.Key, raw any) []string {
	var known []string
	flatten("", raw, func(k string, _ any) { known = append(known, k) })
	hints := []string{"uwf config list"}
	if near := suggest.Nearest(key.String(), known, 1); len(near) > 0 {
		hints = append([]string{"did you mean " + near[0] + "?"}, hints...)
	}
	return hints
}

func (a Commands) configSet(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().Get(0))
	if err != nil {
		return err
	}
	text, err := a.OrStdin(c.Args().Get(1))
	if err != nil {
		return err
	}
	value, err := key.Value(text)
	if err != nil {
		return err
	}
	missing, err := a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		return config.Set(src, path, key, value, a.Env)
	})
	if err != nil {
		return err
	}
	for _, p := range missing {
		a.Say("uwf: the config cannot be used yet: %s", p.Message)
		a.Hint("uwf config set %s <value>", plaintext.Word(strings.TrimSuffix(p.Message, " is missing")))
	}
	a.unusedOverride(ctx, key)
	if s, ok := value.(string); ok && key.Secret() {
		value = config.MaskKey(s)
	}
	return a.Print(configValue{Key: key.String(), Value: value}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s = %s\n", key, plaintext.Line(scalarText(value)))
		return err
	})
}

// unusedOverride warns of an agent for a role that a registered workflow does not
// have: nothing else would ever tell.
func (a Commands) unusedOverride(ctx context.Context, key config.Key) {
	if len(key.Path) != 3 || key.Path[0] != "agentOverrides" {
		return
	}
	name, role := key.Path[1], key.Path[2]
	x, err := a.Index()
	if err != nil {
		return // the config is written; other commands tell about the home
	}
	h, err := x.Workflow(ctx, name)
	if err != nil {
		return // it may be registered later
	}
	s, err := a.Store(ctx)
	if err != nil {
		return
	}
	wf, err := cas.Read[protocol.Workflow](ctx, s, h)
	if _, known := wf.Roles[role]; err != nil || known {
		return
	}
	a.Say("uwf: warning: workflow %s has no role %q", name, role)
	for _, h := range cmdline.DidYouMean("agentOverrides."+name+".", role, slices.Collect(maps.Keys(wf.Roles))) {
		a.Hint("%s", h)
	}
}

// flatText prints a config as "key = value" lines.
func flatText(w io.Writer, prefix string, value any) error {
	var err error
	flatten(prefix, value, func(key string, value any) {
		if err == nil {
			_, err = fmt.Fprintf(w, "%s = %s\n", plaintext.Line(key), plaintext.Line(scalarText(value)))
		}
	})
	return err
}

// flatten calls f for each value that is no mapping, sorted by key.
func flatten(prefix string, value any, f func(key string, value any)) {
	m, ok := value.(map[string]any)
	if !ok {
		f(prefix, value)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		at := key
		if strings.ContainsAny(key, ". ") && prefix != "modelOverrides" {
			at = fmt.Sprintf("%q", key)
		}
		if prefix != "" {
			at = prefix + "." + at
		}
		flatten(at, m[key], f)
	}
}

// scalarText is a value as it would be typed.
func scalarText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	data, err := json.Marshal(value)
	if err != nil { // it came from YAML
		return fmt.Sprint(value)
	}
	return string(data)
}
