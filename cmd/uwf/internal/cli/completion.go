package cli

import (
	"context"
	"embed"
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// completionScripts ask this program for candidates; one per shell.
//
//go:embed completion
var completionScripts embed.FS

// shells are those with a script, and the ends of the scripts' names.
func shells() map[string]string {
	return map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"}
}

func shellNames() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (a commands) completionCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "completion", Usage: "print a script that completes commands in a shell", ArgsUsage: "<shell>",
		Description: "The shells are bash, zsh, fish and powershell. It completes commands and flags,\n" +
			"threads, workflows, agents and more, as they are now. Load it with:\n\n" +
			"   bash         source <(uwf completion bash)           in ~/.bashrc\n" +
			"   zsh          source <(uwf completion zsh)            in ~/.zshrc, behind compinit\n" +
			"   fish         uwf completion fish > ~/.config/fish/completions/uwf.fish\n" +
			"   powershell   uwf completion powershell | Out-String | Invoke-Expression   in $PROFILE",
	}, func(_ context.Context, c *ucli.Context) error {
		name := strings.ToLower(c.Args().First())
		end, ok := shells()[name]
		if !ok {
			hints := []string{"one of " + strings.Join(shellNames(), ", ")}
			if near := suggest.Nearest(name, shellNames(), 1); len(near) > 0 {
				hints = append([]string{"did you mean uwf completion " + near[0] + "?"}, hints...)
			}
			return cmdline.UsageError(fmt.Sprintf("there is no completion for %q", c.Args().First()), hints...)
		}
		script, err := completionScripts.ReadFile("completion/uwf." + end)
		if err != nil {
			return err
		}
		_, err = a.Env.Stdout.Write(script)
		return err
	})
}

// completeCommand answers the scripts: a candidate a line, with a tab before
// its help. It never fails, since nobody would see why.
func (a commands) completeCommand(root *ucli.App) *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "__complete", Hidden: true, Usage: "list what can stand for the last of the words", ArgsUsage: "[word…]",
	}, func(ctx context.Context, c *ucli.Context) error {
		words := c.Args().Slice()
		a.takeHome(words)
		for _, found := range cmdline.Complete(root, words, func(what string) []cmdline.Candidate { return a.values(ctx, what, words) }) {
			line := plaintext.Line(found.Word)
			if found.Help != "" {
				line += "\t" + term.FirstLine(found.Help, 60)
			}
			if _, err := fmt.Fprintln(a.Env.Stdout, line); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeHome heeds a home that is named in the words to complete.
func (a commands) takeHome(words []string) {
	for i, word := range words {
		for flag, into := range map[string]*string{"--home": &a.Flags.Home, "--store": &a.Flags.Store} {
			if word == flag && i+2 < len(words) {
				*into = words[i+1]
			} else if value, ok := strings.CutPrefix(word, flag+"="); ok && i+1 < len(words) {
				*into = value
			}
		}
	}
}
