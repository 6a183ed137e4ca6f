package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/appsec-dev/findings-operator/internal/apitime"
)

var logLevels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// commonOptions are the flags that the controllers and the REST API share.
type commonOptions struct {
	kubeconfig         string
	findingsKubeconfig string
	namespace          string
	logLevel           string
	logFormat          string
}

func (o *commonOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig file; without it $KUBECONFIG, ~/.kube/config, or the pod's service account")
	flags.StringVar(&o.findingsKubeconfig, "findings-kubeconfig", "",
		"kubeconfig file of the API server that stores the kinds, if it is not that of --kubeconfig")
	flags.StringVar(&o.namespace, "namespace", "findings-system", "namespace of the operator")
	flags.StringVar(&o.logLevel, "log-level", "info", "lowest level that is logged: debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "format of the log on standard error: json or text")
}

func (o *commonOptions) validate() error {
	var problems []error
	if invalid := validation.IsDNS1123Label(o.namespace); len(invalid) > 0 {
		problems = append(problems, fmt.Errorf("--namespace %q is not a valid namespace name: %s", o.namespace,
			strings.Join(invalid, "; ")))
	}
	if _, known := logLevels[o.logLevel]; !known {
		problems = append(problems, fmt.Errorf("--log-level must be debug, info, warn or error, not %q", o.logLevel))
	}
	switch o.logFormat {
	case "json", "text":
	case "console": // the former --zap-encoder's name for text
	default:
		problems = append(problems, fmt.Errorf("--log-format must be json or text, not %q", o.logFormat))
	}
	return errors.Join(problems...)
}

// logger returns the logger that the flags configure, and makes the libraries use it too.
func (o *commonOptions) logger() *slog.Logger {
	level := logLevels[o.logLevel]
	log := slog.New(newHandler(os.Stderr, o.logFormat, level))
	klog.SetSlogLogger(log)
	ctrl.SetLogger(newLibraryLogger(os.Stderr, o.logFormat, level))
	return log
}

// local returns the config for the cluster that the process runs in.
func (o *commonOptions) local(manager string) (*rest.Config, error) {
	return loadConfig("--kubeconfig", o.kubeconfig, manager)
}

// plane returns the config for the API server that stores the kinds, usually the same one. The process uses that
// server's time.
func (o *commonOptions) plane(manager string) (*rest.Config, error) {
	flag, path := "--findings-kubeconfig", o.findingsKubeconfig
	if path == "" {
		flag, path = "--kubeconfig", o.kubeconfig
	}
	config, err := loadConfig(flag, path, manager)
	if err != nil {
		return nil, err
	}
	apitime.Observe(config)
	return config, nil
}

// loadConfig reads a kubeconfig file, or the default if path is empty. manager is the field manager of the process's
// writes.
func loadConfig(flag, path, manager string) (*rest.Config, error) {
	config, err := readConfig(flag, path)
	if err != nil {
		return nil, err
	}
	// The API server limits clients by Priority and Fairness. With client-go's default of five requests per second, an
	// import of 10,000 findings would take half an hour.
	config.QPS = -1
	config.UserAgent = rest.DefaultKubernetesUserAgent() + "/" + manager
	return config, nil
}

// readConfig uses the pod's service account only without a kubeconfig. Otherwise the API server of a file that names
// none would silently be the pod's own.
func readConfig(flag, path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	variable := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" && variable != "" {
		flag = "$" + clientcmd.RecommendedConfigPathEnvVar
	}
	file, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig file of %s: %w", flag, err)
	}
	if path == "" && variable == "" && clientcmdapi.IsConfigEmpty(file) {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("find the API server (give %s, or run in a pod): %w", flag, err)
		}
		return config, nil
	}
	path = cmp.Or(path, variable, clientcmd.RecommendedHomeFile)
	config, err := clientcmd.NewDefaultClientConfig(*file, nil).ClientConfig()
	if err != nil && file.CurrentContext == "" {
		return nil, fmt.Errorf("%s: the kubeconfig file %s names no API server: it does not exist or has no current-context",
			flag, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: the kubeconfig file %s cannot be used: %w", flag, path, err)
	}
	return config, nil
}
