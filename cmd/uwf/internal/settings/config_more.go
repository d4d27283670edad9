package settings

import (
	"context"
	"fmt"
	"io"
	"reflect"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

func (a Commands) configUnset(ctx context.Context, c *ucli.Context) error {
	key, err := config.ParseKey(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.changeConfig(ctx, func(src []byte, path string) ([]byte, []protocol.Problem, error) {
		text, err := config.Unset(src, path, key, a.Env)
		return text, nil, err
	})
	if err != nil {
		return err
	}
	return a.Print(configValue{Key: key.String()}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s is unset\n", key)
		return err
	})
}

// configOrigin is one value of config show --origin.
type configOrigin struct {
	configValue
	Origin string `json:"origin"` // the file
}

func (a Commands) configShow(ctx context.Context, c *ucli.Context) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	inForce, err := e.Config(ctx)
	if err != nil {
		return err
	}
	shown, err := config.Shown(inForce)
	if err != nil {
		return err
	}
	if !c.Bool("origin") {
		return a.Print(shown, func(w io.Writer) error { return flatText(w, "", shown) })
	}
	own, err := config.Load(ctx, e.Dirs.Config(), e.Env)
	if err != nil {
		return err
	}
	users, err := config.Shown(own)
	if err != nil {
		return err
	}
	said := map[string]any{}
	flatten("", users, func(key string, value any) { said[key] = value })
	list := []configOrigin{}
	flatten("", shown, func(key string, value any) {
		from := e.Dirs.Config()
		if was, known := said[key]; !known || !reflect.DeepEqual(was, value) {
			from = e.Project
		}
		list = append(list, configOrigin{configValue{key, value}, from})
	})
	return a.Print(list, func(w io.Writer) error {
		for _, v := range list {
			if _, err := fmt.Fprintf(w, "%s = %s  (%s)\n", plaintext.Line(v.Key), plaintext.Line(scalarText(v.Value)), plaintext.Line(a.Workflows().Shown(v.Origin))); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a Commands) configPath(context.Context, *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	return a.Print(map[string]string{"path": dirs.Config()}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, plaintext.Line(dirs.Config()))
		return err
	})
}
