#include "encode/mel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <map>
#include <mutex>

namespace ot {
namespace {

using Complex = std::complex<float>;

constexpr uint32_t kBins = kWindow / 2 + 1;
constexpr float kLeastPower = 1e-10f;
constexpr double kPi = 3.14159265358979323846;

// 400 = 16 x 25: radix-2 halving down to 25, and a plain DFT of the 25 that are left.
class Fourier {
public:
    Fourier() {
        for (uint32_t i = 0; i < kWindow; ++i) {
            const double angle = -2.0 * kPi * i / kWindow;
            twiddle_[i] = Complex(static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle)));
        }
    }

    // in: `n` values `stride` apart; out: n coefficients. scratch is as long as out.
    void transform(const float * in, uint32_t n, uint32_t stride, Complex * out, Complex * scratch) const {
        const uint32_t step = kWindow / n;
        if (n % 2 != 0) {
            for (uint32_t k = 0; k < n; ++k) {
                Complex sum = 0.0f;
                for (uint32_t j = 0, phase = 0; j < n; ++j, phase += k * step) {
                    phase %= kWindow;
                    sum += in[j * stride] * twiddle_[phase];
                }
                out[k] = sum;
            }
            return;
        }
        const uint32_t half = n / 2;
        transform(in, half, stride * 2, scratch, out);
        transform(in + stride, half, stride * 2, scratch + half, out + half);
        for (uint32_t k = 0; k < half; ++k) {
            const Complex odd = scratch[half + k] * twiddle_[k * step];
            out[k] = scratch[k] + odd;
            out[half + k] = scratch[k] - odd;
        }
    }

private:
    std::array<Complex, kWindow> twiddle_;
};

double hz_to_mel(double hz) { return hz < 1000.0 ? hz * 3.0 / 200.0 : 15.0 + std::log(hz / 1000.0) * 27.0 / std::log(6.4); }
double mel_to_hz(double mel) { return mel < 15.0 ? mel * 200.0 / 3.0 : 1000.0 * std::exp((mel - 15.0) * std::log(6.4) / 27.0); }

// One triangular band: weights of the bins from `first` on.
struct Band {
    uint32_t first = 0;
    std::vector<float> weights;
};

// Slaney's filter bank: triangles between n + 2 points equally spaced in mel from 0 to 8 kHz, each of unit area.
std::vector<Band> filter_bank(uint32_t n_mel) {
    std::vector<double> points(n_mel + 2);
    const double top = hz_to_mel(kSampleRate / 2.0);
    for (uint32_t i = 0; i < points.size(); ++i) points[i] = mel_to_hz(top * i / (n_mel + 1));
    std::vector<Band> bands(n_mel);
    for (uint32_t m = 0; m < n_mel; ++m) {
        const double low = points[m], mid = points[m + 1], high = points[m + 2];
        for (uint32_t bin = 0; bin < kBins; ++bin) {
            const double hz = static_cast<double>(bin) * kSampleRate / kWindow;
            const double weight = std::max(0.0, std::min((hz - low) / (mid - low), (high - hz) / (high - mid))) * 2.0 / (high - low);
            if (weight <= 0.0) continue;
            if (bands[m].weights.empty()) bands[m].first = bin;
            bands[m].weights.push_back(static_cast<float>(weight));
        }
    }
    return bands;
}

const std::vector<Band> & bands_for(uint32_t n_mel) {
    static std::mutex mutex;
    static std::map<uint32_t, std::vector<Band>> banks;
    const std::lock_guard lock{mutex};
    auto [it, added] = banks.try_emplace(n_mel);
    if (added) it->second = filter_bank(n_mel);
    return it->second;
}

std::array<float, kWindow> hann() {
    std::array<float, kWindow> window;
    for (uint32_t i = 0; i < kWindow; ++i) window[i] = static_cast<float>(0.5 - 0.5 * std::cos(2.0 * kPi * i / kWindow));
    return window;
}

// The window with half an analysis window on either side.
std::vector<float> padded(Sound window, Sound left, Sound right) {
    constexpr size_t pad = kWindow / 2;
    std::vector<float> out(window.size + 2 * pad, 0.0f);
    std::copy_n(window.data, window.size, out.begin() + pad);
    if (left.size >= pad) {
        std::copy_n(left.data + (left.size - pad), pad, out.begin());
    } else {
        for (size_t i = 0; i < pad; ++i) {
            const size_t mirrored = i + 1;  // distance to the left of the first sample
            if (mirrored <= left.size) {
                out[pad - mirrored] = left.data[left.size - mirrored];
            } else if (mirrored < window.size) {
                out[pad - mirrored] = window.data[mirrored];
            }
        }
    }
    const size_t following = std::min(right.size, pad);
    if (following > 0) std::copy_n(right.data, following, out.end() - static_cast<std::ptrdiff_t>(pad));
    return out;
}

}  // namespace

Mel log_mel(Sound window, Sound left, Sound right, uint32_t n_mel) {
    static const Fourier fourier;
    static const std::array<float, kWindow> taper = hann();
    const std::vector<Band> & bands = bands_for(n_mel);

    Mel mel{n_mel, static_cast<uint32_t>(window.size / kHop), {}, 0};
    mel.data.resize(static_cast<size_t>(n_mel) * mel.n_frames);
    const std::vector<float> sound = padded(window, left, right);
    std::array<float, kWindow> frame;
    std::array<Complex, kWindow> spectrum, scratch;
    std::array<float, kBins> power;
    float loudest = -1e30f;
    for (uint32_t i = 0; i < mel.n_frames; ++i) {
        for (uint32_t j = 0; j < kWindow; ++j) frame[j] = sound[static_cast<size_t>(i) * kHop + j] * taper[j];
        fourier.transform(frame.data(), kWindow, 1, spectrum.data(), scratch.data());
        for (uint32_t bin = 0; bin < kBins; ++bin) power[bin] = std::norm(spectrum[bin]);
        for (uint32_t m = 0; m < n_mel; ++m) {
            float sum = 0.0f;
            for (size_t k = 0; k < bands[m].weights.size(); ++k) sum += bands[m].weights[k] * power[bands[m].first + k];
            const float value = std::log10(std::max(sum, kLeastPower));
            mel.data[static_cast<size_t>(m) * mel.n_frames + i] = value;
            loudest = std::max(loudest, value);
        }
    }
    const auto mapped = [loudest](float value) { return (std::max(value, loudest - 8.0f) + 4.0f) / 4.0f; };
    for (float & value : mel.data) value = mapped(value);
    mel.silence = mapped(std::log10(kLeastPower));
    return mel;
}

}  // namespace ot
