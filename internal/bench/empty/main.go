// Command empty does nothing; it shows the minimum cost of a Go program.
package main

func main() {}
