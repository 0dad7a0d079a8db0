package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/payonce/payonce/cmd/payonce/internal/config"
	"github.com/payonce/payonce/internal/run"
)

// streams are where a command writes: results on out, everything else on err.
type streams struct{ out, err io.Writer }

func newRoot(stdout, stderr io.Writer) *cobra.Command {
	io := streams{stdout, stderr}
	root := &cobra.Command{
		Use:   "payonce",
		Short: "A payment service that charges an order at most once",
		Long: `Payonce stands between a shop and its payment channels and keeps one promise:
at most one effective charge per order, nothing lost, and anyone can check it.

Start with ` + "`payonce dev`" + `: it runs everything on this machine, with a simulated
channel and a demo shop, and needs no configuration.`,
		Example: `  payonce dev                                  # service, simulator and demo shop
  payonce migrate up --config payonce.yaml     # prepare a database
  payonce serve --config payonce.yaml          # the service
  payonce doctor --config payonce.yaml         # is everything in order?`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDev(io), newServe(io), newWorker(io), newMigrate(io), newSim(io), newKeys(io), newDoctor(io), newVersion(io),
		newService(io), newFailpoints(io))
	return root
}

// source is where a command finds its settings.
type source struct {
	file string
	data string // a folder of payonce dev
}

func (s *source) flags(cmd *cobra.Command, dev bool) {
	cmd.Flags().StringVar(&s.file, "config", "", "configuration file (default $"+config.EnvConfig+", else the environment alone)")
	if dev {
		cmd.Flags().StringVar(&s.data, "data", "", "data folder of payonce dev, instead of a configuration")
		cmd.MarkFlagsMutuallyExclusive("config", "data")
	}
}

func (s *source) config() config.Source {
	file := s.file
	if file == "" {
		file = os.Getenv(config.EnvConfig)
	}
	return config.Source{File: file, Environ: os.Environ(), Failpoints: run.FailpointsBuilt}
}

// load reads the whole configuration.
func (s *source) load(log *slog.Logger) (*config.Config, error) {
	c, warnings, err := config.Load(s.config())
	for _, w := range warnings {
		log.Warn(w)
	}
	if err != nil {
		return nil, configError(err)
	}
	return c, nil
}

// databaseURL reads only what a command that needs the database alone has to
// know.
func (s *source) databaseURL(log *slog.Logger) (config.Secret, error) {
	if s.data != "" {
		path, err := databaseOf(s.data)
		if err != nil {
			return config.Secret{}, coded(exitConfig, err)
		}
		if _, err := os.Stat(path); err != nil {
			return config.Secret{}, exit(exitConfig, "%s is not a data folder of payonce dev: there is no payonce.db", s.data)
		}
		return config.NewSecret("sqlite://" + path), nil
	}
	url, warnings, err := config.LoadDatabase(s.config())
	for _, w := range warnings {
		log.Warn(w)
	}
	if err != nil {
		return url, configError(err)
	}
	return url, nil
}

// databaseOf is the database of a data folder, as an absolute path.
func databaseOf(data string) (string, error) {
	return filepath.Abs(filepath.Join(data, "payonce.db"))
}

// jsonLog is for machines that collect logs, textLog for people at a terminal.
func (s streams) jsonLog() *slog.Logger { return slog.New(slog.NewJSONHandler(s.err, nil)) }

func (s streams) textLog(process string) *slog.Logger {
	log := slog.New(slog.NewTextHandler(s.err, nil))
	if process != "" {
		log = log.With("process", process)
	}
	return log
}

// untilStopped ends with SIGTERM or SIGINT. A second signal ends the process at
// once, as signals do without us.
func untilStopped(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
