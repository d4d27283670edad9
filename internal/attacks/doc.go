// Package attacks tests uwf's sandbox from outside: it runs attack programs in a command role and in
// run_command, and then checks what happened to the user's home, git, processes and secrets. It uses only
// uwf's command line.
package attacks
