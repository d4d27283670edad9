package builtin

import (
	"errors"
	"strings"
)

// parseArgs takes --model out of the arguments.
func (a *agent) parseArgs(args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		flag, value, attached := strings.Cut(args[i], "=")
		if flag != "--model" {
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, errors.New("--model needs the alias of a model in config.yaml")
			}
			value = args[i]
		}
		if value == "" {
			return nil, errors.New("--model is empty: name a model of config.yaml")
		}
		a.model = value
	}
	return rest, nil
}
